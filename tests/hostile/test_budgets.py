"""Inputs that were made to hurt: one line and 65, within limits that the system holds, nothing left behind.

The inputs are those of ``benchmarks/hostile_inputs.py``, small. Each command may use what some ten times the
measured need is; whatever hangs or hoards is ended by the system, which no exit code of rpl looks like.
"""

from __future__ import annotations

import re

import pytest

from .conftest import hostile

#: Seconds of work each, and of what they show others show the most.
LONG = {"gzip: a bomb", "csv: too many kernels", "csv: distinct kernels", "json: one value of small ones"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long] * (n in LONG)) for n in hostile.CASES]
)
def test_one_line_within_the_limits(name, limited, tmp_path, monkeypatch):
    case = hostile.CASES[name]
    place, temporary = tmp_path / "input", tmp_path / "tmp"
    place.mkdir()
    temporary.mkdir()
    path = case.make(place, case.small)
    before = {file: file.lstat().st_mtime_ns for file in place.iterdir()}
    monkeypatch.setenv("TMPDIR", str(temporary))
    ending = limited("analyze", path, "-o", tmp_path / "out", "--device", "gfx942")
    assert ending.exit_code == case.exit_code, ending.err
    assert re.search(case.says, ending.err), ending.err
    assert {file: file.lstat().st_mtime_ns for file in place.iterdir()} == before
    assert list(temporary.iterdir()) == []
    if case.exit_code:
        assert len(ending.err.splitlines()) == 1, ending.err
        assert not (tmp_path / "out").exists()
