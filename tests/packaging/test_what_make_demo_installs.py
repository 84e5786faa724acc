"""`make demo` sets up what running needs: every distribution but the test kit and what agents need."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _editable(name: str) -> set[str]:
    lines = (ROOT / name).read_text().splitlines()
    return {re.sub(r"\[.*", "", line.removeprefix("-e ")) for line in lines if line.startswith("-e ")}


def test_everything_that_runs_and_nothing_else():
    run = _editable("requirements-run.txt")
    assert run == _editable("requirements-dev.txt") - {"plugins/rpl_testkit", "plugins/rpl_mcp"}
    lines = (ROOT / "requirements-run.txt").read_text().splitlines()
    others = [line for line in lines if line and not line.startswith(("#", "-e "))]
    assert others == ["tomli>=2; python_version < '3.11'"]


def test_the_demo_needs_no_more_than_that():
    text = (ROOT / "Makefile").read_text()
    assert re.search(r"^demo: \$\(RUNNABLE\) ", text, re.MULTILINE)
    rule = text.partition("\n$(RUNNABLE): requirements-run.txt")[2].partition("\n\n")[0]
    assert "-r requirements-run.txt" in rule
    assert "requirements-dev" not in rule
