"""Readers that recognise files by their ending, for tests of who gets which file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from rpl_core.interfaces.reader import InputSet, Reader
from rpl_core.model.trace import TraceRole, TraceSource
from rpl_core.plugins.host import Contribution
from rpl_testkit.traces import TracedDispatch, make_trace


class SuffixReader(Reader):
    """Claims files by ending. Each file is one trace of one dispatch, as long as the file in ns.

    ``.pmc`` in the name gives it counters; of ``.timed.pmc`` the reader says all the same that it was timed.
    """

    summary = "reads by ending"

    def __init__(
        self,
        name: str,
        suffix: str,
        *,
        priority: int = 0,
        refusal: str | None = None,
        sha256: tuple[str, ...] = (),
    ) -> None:
        self.name, self.priority = name, priority
        self._suffix, self._refusal, self._sha256 = suffix, refusal, sha256

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        found = [path for path in files if path.name.endswith(self._suffix)]
        return [InputSet(self.name, "test", (path,), refusal=self._refusal) for path in found]

    def read(self, inputs):
        path = inputs.paths[0]
        counters = {"SQ_WAVES": 1.0} if ".pmc" in path.name else {}
        role = TraceRole.TIMING if ".timed" in path.name else None
        trace = make_trace(
            [TracedDispatch("kernel", 0, len(path.read_bytes()), counters=counters)], role=role
        )
        source = TraceSource(self.name, "test", (str(path),), self._sha256)
        return (attrs.evolve(trace, source=source),)


class BrokenReader(SuffixReader):
    def __init__(self, where: str) -> None:
        super().__init__("broken", ".x", priority=100)
        self._where = where

    def claim(self, files):
        if self._where == "claim":
            raise ZeroDivisionError("bad luck")
        return super().claim(files)

    def read(self, inputs):
        print("chatter")
        raise ZeroDivisionError("bad luck")


@pytest.fixture
def suffix_reader():
    """``suffix_reader("a", ".x", priority=1)``: a reader as a plugin offers it."""

    def make(name: str, suffix: str, **options: object) -> Contribution[Reader]:
        return Contribution(f"plugin-{name}", SuffixReader(name, suffix, **options))

    return make


@pytest.fixture
def broken_reader():
    """``broken_reader("claim")``: a reader of higher priority that raises there."""

    def make(where: str) -> Contribution[Reader]:
        return Contribution("plugin-broken", BrokenReader(where))

    return make
