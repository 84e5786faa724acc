"""`rpl --version` and `rpl --help` answer at once: nothing heavy is imported."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest

HEAVY = ("attr", "networkx", "numpy", "pluggy", "pydantic", "rich", "sqlite3", "stevedore")
LIST_MODULES = """
import json, sys
from rpl_core.cli import main
sys.argv = ["rpl", *sys.argv[1:]]
try:
    code = main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def imported_by(*words):
    done = subprocess.run(
        [sys.executable, "-c", LIST_MODULES, *words], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("words", [("--version",), ("-V",), ("--help",), ("-h",), ()])
def test_nothing_heavy_is_imported(words):
    assert sorted(imported_by(*words) & set(HEAVY)) == []


def test_version_does_not_even_import_click():
    assert "click" not in imported_by("--version")


def test_help_imports_no_command_and_no_plugin():
    modules = imported_by("--help")
    assert not {name for name in modules if name.startswith(("rpl_rocprofv3", "rpl_gfx942"))}
    assert "rpl_core.cli.profile" not in modules


@pytest.mark.parametrize("command", ["profile", "analyze", "report", "explain"])
def test_help_of_a_command_loads_no_plugin_host_and_no_numpy(command):
    modules = imported_by(command, "--help")
    assert sorted(modules & {"numpy", "networkx", "pydantic", "rich", "stevedore"}) == []


@pytest.mark.parametrize(("option", "limit_ms"), [("--version", 60), ("--help", 100)])
def test_cpu_time_stays_below_its_target(option, limit_ms):
    """The best of a few starts; on a slower machine the bare interpreter sets the scale."""
    bare = min(_cpu_ms("-c", "pass") for _ in range(3))
    start = "import sys; from rpl_core.cli import main; sys.argv[0] = 'rpl'; sys.exit(main())"
    best = min(_cpu_ms("-c", start, option) for _ in range(5))
    assert best < max(limit_ms, limit_ms / 10 * bare)


def _cpu_ms(*words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
