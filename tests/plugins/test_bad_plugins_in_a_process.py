"""Plugins that reach for the process itself: its exit code, its descriptors, its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

START = "import sys; from rpl_core.cli import main; sys.argv[0] = 'rpl'; sys.exit(main())"
LOADED = "rpl-core,rpl-analysis,rpl-report,rpl-rocprofv3,rpl-gfx942"


@pytest.fixture
def analysed(rpl_cli, rpl_site, rpl_make_rocpd):
    """``analysed(source)``: ``rpl analyze --json`` beside a plugin made of ``source``."""

    def run(source):
        rpl_site.plugin("bad", source)
        path = rpl_make_rocpd([("k", 100, 200)])
        env = {"PYTHONPATH": str(rpl_site.folder), "RPL_LOAD_PLUGINS": f"{LOADED},rpl-bad"}
        return rpl_cli.process("analyze", "--json", path, "--device", "gfx942", env=env)

    return run


@pytest.mark.parametrize(
    "error", ["BaseException('gone')", "KeyboardInterrupt", "GeneratorExit", "SystemExit(1)"]
)
@pytest.mark.parametrize("place", ["import", "hook"])
def test_what_no_program_expects_costs_only_the_plugin(error, place, analysed):
    hook = f"@hookimpl\ndef rpl_device_models(): raise {error}\n"
    outcome = analysed(f"raise {error}\n" if place == "import" else hook).assert_ok()
    assert outcome.json()["runtime_ms"] is not None


def test_what_is_written_to_descriptor_1_stays_out_of_the_result(analysed):
    outcome = analysed(
        "import os, subprocess\nos.write(1, b'from a plugin')\n"
        "@hookimpl\ndef rpl_device_models():\n"
        "    subprocess.run(['echo', 'from a child'], check=True)\n    return ()\n"
    ).assert_ok()
    assert outcome.json()["runtime_ms"] is not None
    assert "from a plugin" in outcome.stderr
    assert "from a child" in outcome.stderr


@pytest.mark.parametrize("last", ["os._exit(1)", "sys.exit(1)", "print('bye')"])
def test_what_is_done_at_exit_changes_neither_result_nor_exit_code(last, analysed):
    source = f"import atexit, os, sys\natexit.register(lambda: {last})\n"
    outcome = analysed(source)
    assert outcome.exit_code == 0
    assert json.loads(outcome.stdout)["runtime_ms"] is not None


@pytest.mark.parametrize("end", ["2>&-", "2>/dev/full", "2> >(exec true; sleep 0)", "<&- 2>&-"])
def test_a_result_needs_nobody_who_listens_to_stderr(end, rpl_make_rocpd):
    path = rpl_make_rocpd([("k", 100, 200)])
    command = f'"$0" -c "$1" analyze --json --device gfx942 "$2" {end}'
    done = subprocess.run(
        ["bash", "-c", command, sys.executable, START, path],
        stdout=subprocess.PIPE,
        check=False,
        env={**os.environ, "RPL_LOAD_PLUGINS": LOADED},
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["runtime_ms"] is not None
