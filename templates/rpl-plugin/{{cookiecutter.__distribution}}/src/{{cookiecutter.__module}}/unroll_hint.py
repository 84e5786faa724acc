"""`#pragma unroll` before short loops with a constant trip count; replace it by your change.

The hint can't change what a program computes, so one guard is enough. A change that could needs more of them.
"""

from __future__ import annotations

import re

from rpl_optimize.interfaces.transformation import (
    Edit,
    EditCandidate,
    GuardVerdict,
    KernelSource,
    Transformation,
)

#: Chosen: longer loops grow the code more than they save branches.
LONGEST_LOOP = 16

_LOOP = re.compile(rb"^([ \t]*)for \(int (\w+) = 0; \2 < (\d+); (?:\+\+\2|\2\+\+)\)", re.MULTILINE)
_HINT = re.compile(rb"#pragma unroll[^\n]*\n\s*\Z")


class UnrollHint(Transformation):
    """Gets the bytes of one file, returns candidates, also refused ones with the reason. Writes nothing."""

    name = "{{ cookiecutter.plugin_name }}"
    summary = "Put #pragma unroll before short loops with a constant trip count."

    def propose(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        if source.kernel is not None:
            return ()  # this plugin does not know which kernel a loop belongs to
        loops = _LOOP.finditer(source.text)
        return tuple(_candidate(loop) for loop in loops if not _HINT.search(source.text[: loop.start()]))


def _candidate(loop: re.Match[bytes]) -> EditCandidate:
    line = loop.string.count(b"\n", 0, loop.start()) + 1
    trips = int(loop[3])
    short = trips <= LONGEST_LOOP
    reason = f"{trips} of at most {LONGEST_LOOP}" if short else f"{trips} are more than {LONGEST_LOOP}"
    return EditCandidate(
        id=f"line-{line}",
        kernel=None,
        line=line,
        summary=f"unroll {trips} trips",
        edits=(Edit(loop.start(), loop.start(), loop[1] + b"#pragma unroll\n"),),
        guards=(GuardVerdict("short-loop", short, f"trips: {reason}", None if short else line),),
    )
