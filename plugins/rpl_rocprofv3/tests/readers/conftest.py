"""Reading shortcuts for the tests of the readers; expected values never come from here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rpl_core.interfaces.reader import InputSet
from rpl_core.model.trace import Trace
from rpl_rocprofv3.readers.catalog import all_readers


@pytest.fixture
def claim() -> Callable[..., list[InputSet]]:
    """``claim(path, ...)``: all input sets that any reader makes of these files and folders."""

    def claimed(*paths: Path) -> list[InputSet]:
        files = [f for p in paths for f in ([p] if p.is_file() else sorted(p.rglob("*"))) if f.is_file()]
        return [found for reader in all_readers() for found in reader.claim(files)]

    return claimed


@pytest.fixture
def read(claim) -> Callable[..., tuple[Trace, ...]]:
    """``read(path, ...)``: the traces of the one input set that these files make."""

    def read_set(*paths: Path) -> tuple[Trace, ...]:
        (found,) = claim(*paths)
        assert found.refusal is None, found.refusal
        (reader,) = [reader for reader in all_readers() if reader.name == found.reader]
        return reader.read(found)

    return read_set


@pytest.fixture
def codes() -> Callable[[Trace], dict[str, int]]:
    """``codes(trace)``: the diagnostics as code -> count."""
    return lambda trace: {d.code: d.count for d in trace.diagnostics}
