"""Times of several devices: one process each, corrected by a reference that all measure."""

from __future__ import annotations

import pytest

FACTORS = "import os; factor = {'0': 1.0, '1': 2.0}[os.environ['ROCR_VISIBLE_DEVICES']]\n"


@pytest.mark.long
def test_times_of_two_devices_are_made_comparable(tune, workplace):
    """The second device takes twice as long for everything; the reference tells."""
    program = (workplace / "program.py").read_text()
    program = FACTORS + program.replace("{1 + steps:.4f}", "{(1 + steps) * factor:.4f}")
    (workplace / "program.py").write_text(
        program.replace("import sys, time", "import sys, time\ntime.sleep(0.1)")
    )
    found = tune("--devices", "0,1", "--budget", "8", "--confirm-rounds", "6").assert_ok().json()
    devices = {device["name"].rpartition(":")[2]: device for device in found["devices"]}
    assert devices.keys() == {"0", "1"}
    assert min(device["evaluations"] for device in devices.values()) >= 1
    first, other = (devices["0"], devices["1"])
    assert first["correction"] / other["correction"] == pytest.approx(2.0)
    standard = 1.0 if first["correction"] == 1.0 else 2.0
    for evaluation in found["evaluations"]:
        if evaluation["runtime_ms"] is None:
            continue
        bm, bn = evaluation["parameters"]["BM"], evaluation["parameters"]["BN"]
        truth = 1 + abs(bm.bit_length() - 7) * 0.3 + abs(bn.bit_length() - 6) * 0.2
        assert evaluation["runtime_ms"] == pytest.approx(truth * standard, rel=1e-3)
        assert evaluation["correction"] is not None


@pytest.mark.long
def test_a_reference_that_fails_ends_a_search_on_several_devices(tune):
    done = tune("--devices", "0,1", "--budget", "8", "--default", "BM=512,BN=512").assert_exit(76)
    assert "--default" in done.stderr
