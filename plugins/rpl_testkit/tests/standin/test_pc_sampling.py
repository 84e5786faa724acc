"""PC sampling: refusals in the words of driver and library, and tables like those of a real GPU."""

from __future__ import annotations

import csv
import json
from collections import Counter

import pytest

METHOD, UNIT, INTERVAL = "--pc-sampling-method", "--pc-sampling-unit", "--pc-sampling-interval"
BETA = "--pc-sampling-beta-enabled"
STOCHASTIC = (BETA, METHOD, "stochastic", UNIT, "cycles", INTERVAL, "1048576")


@pytest.mark.parametrize(
    ("options", "environment", "code", "says"),
    [
        (STOCHASTIC[1:], {}, 1, "Fatal error: PC sampling unavailable. The feature is implicitly disabled."),
        ((BETA, METHOD, "stochastic"), {}, 1, "All three PC sampling configurations need to be set"),
        ((*STOCHASTIC[:-1], "-4"), {}, 1, "PC sampling interval must be a positive number."),
        ((*STOCHASTIC[:-1], "many"), {}, 2, "invalid int value: 'many'"),
        ((BETA, METHOD, "guess"), {}, 2, "invalid choice: 'guess'"),
        (
            (BETA, METHOD, "stochastic", UNIT, "time", INTERVAL, "9"),
            {},
            1,
            "not supported on any of the agents",
        ),
        ((*STOCHASTIC[:-1], "128"), {}, 1, "not supported on any of the agents"),
        ((*STOCHASTIC[:-1], "1000"), {}, -6, "configure PC sampling failed"),
    ],
)
def test_what_can_not_be_is_refused_as_the_real_one_does(profiler, results, options, environment, code, says):
    done = profiler(*options, "-d", "o", "--", "true", **environment)
    assert done.returncode == code
    assert says in done.stderr
    assert results("*pc_sampling*") == []


def test_the_variable_opens_the_beta_too(profiler):
    environment = {"ROCPROFILER_PC_SAMPLING_BETA_ENABLED": "ON"}
    done = profiler(*STOCHASTIC[1:], "-d", "o", "-f", "csv", "--kernel-trace", "--", "true", **environment)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("options", "real"),
    [
        (STOCHASTIC, "pc_sampling_stochastic_debug.csv"),
        ((BETA, METHOD, "host_trap", UNIT, "time", INTERVAL, "500"), "pc_sampling_host_trap_debug.csv"),
    ],
)
def test_both_formats_tell_the_same_samples_under_the_real_names(
    profiler, results, rpl_shared_data, options, real
):
    done = profiler(*options, "-d", "o", "-o", "x", "-f", "csv", "json", "--kernel-trace", "--", "true")
    assert done.returncode == 0
    method = options[2]
    (table,) = results(f"x_pc_sampling_{method}.csv")
    (path,) = results("x_results.json")
    with table.open(newline="") as written, (rpl_shared_data / "pc_sampling" / real).open() as recorded:
        rows = list(csv.DictReader(written))
        assert list(rows[0]) == next(csv.reader(recorded))
    (process,) = json.loads(path.read_text())["rocprofiler-sdk-tool"]
    strings, records = process["strings"], process["buffer_records"][f"pc_sample_{method}"]
    assert len(strings["pc_sample_instructions"]) == len(strings["pc_sample_comments"])
    told = Counter(
        (
            str(one["record"]["timestamp"]),
            str(one["record"]["exec_mask"]),
            strings["pc_sample_instructions"][one["inst_index"]],
            one["record"].get("snapshot", {}).get("stall_reason"),
        )
        for one in records
    )
    assert told == Counter(
        (row["Sample_Timestamp"], row["Exec_Mask"], row["Instruction"], row.get("Stall_Reason"))
        for row in rows
    )
    assert len(rows) > 500


def test_the_same_run_gives_the_same_samples(profiler, results):
    for name in ("a", "b"):
        profiler(*STOCHASTIC, "-d", "o", "-o", name, "-f", "csv", "--kernel-trace", "--", "true")
    first, second = results("?_pc_sampling_stochastic.csv")
    assert first.read_bytes() == second.read_bytes()
