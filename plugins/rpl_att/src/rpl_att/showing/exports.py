"""Cycles by call chain for flame graphs: collapsed stacks and speedscope documents.

A stack is the kernel, then the inline chain of an instruction from the outermost frame inwards, then the
instruction itself. Weights are cycles (latency + idle) summed over the traced waves; nothing is sampled.
"""

from __future__ import annotations

from typing import Any

from rpl_att.analysis.hot_spots import cost, frames
from rpl_att.analysis.totals import totals_of
from rpl_att.showing.choose import Chosen

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def stacks(chosen: Chosen) -> tuple[tuple[tuple[str, ...], int], ...]:
    """(frames from the kernel to the instruction, cycles) of every executed row, in order of the code."""
    totals, code = totals_of(chosen.trace), chosen.trace.code
    assert totals is not None
    assert code is not None
    cycles = cost(totals)
    kernel = chosen.block.kernel or "unknown kernel"
    return tuple(
        (
            (kernel, *reversed(frames(code.source[row])), f"{code.isa[row]} [line {code.line[row]}]"),
            int(cycles[row]),
        )
        for row in range(len(code))
        if totals.hit[row] and cycles[row]
    )


def collapsed(chosen: Chosen) -> str:
    """One line per stack, frames separated by semicolons, as flamegraph.pl reads it."""
    lines = (f"{';'.join(_plain(frame) for frame in stack)} {cycles}\n" for stack, cycles in stacks(chosen))
    return "".join(lines)


def _plain(frame: str) -> str:
    """A frame without what separates frames and lines."""
    return " ".join(frame.replace(";", ",").split())


def speedscope(chosen: Chosen) -> dict[str, Any]:
    """A speedscope document with one profile. Cycles have no unit there, so it is "none"."""
    numbers: dict[str, int] = {}
    samples, weights = [], []
    for stack, cycles in stacks(chosen):
        samples.append([numbers.setdefault(frame, len(numbers)) for frame in stack])
        weights.append(cycles)
    return {
        "$schema": _SCHEMA,
        "name": f"{chosen.block.kernel or 'unknown kernel'}, thread trace, shader clocks",
        "exporter": "rpl",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in numbers]},
        "profiles": [
            {
                "type": "sampled",
                "name": chosen.block.folder,
                "unit": "none",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        ],
    }
