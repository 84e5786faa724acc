"""Two traces side by side: fractions, and the instructions whose cycles per wave changed most.

Traces of different length are compared per wave. Instructions are matched by their text in order, so that
inserted and removed ones are seen as such.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

import attrs

from rpl_att.contract import AttInstruction, AttPart
from rpl_att.showing.choose import Chosen
from rpl_att.showing.listing import instructions_of
from rpl_core.errors import BadDataError
from rpl_core.values import frozen

_FIGURES = (
    "issue_fraction",
    "stall_fraction",
    "idle_fraction",
    "headroom_fraction",
    "waves_per_simd",
    "avg_memory_latency",
)


@frozen
class ChangedRow:
    """One instruction in both traces, or in one of them; cycles are latency + idle per wave."""

    isa: str
    line_before: int | None
    line_after: int | None
    before: float | None
    after: float | None

    @property
    def change(self) -> float:
        return (self.after or 0.0) - (self.before or 0.0)


@frozen
class Difference:
    """``figures``: name -> (before, after); ``rows`` by descending size of the change."""

    figures: dict[str, tuple[float | None, float | None]]
    rows: tuple[ChangedRow, ...]

    def plain(self) -> dict[str, Any]:
        return {
            "figures": {name: {"before": a, "after": b} for name, (a, b) in self.figures.items()},
            "instructions": [attrs.asdict(row) | {"change": row.change} for row in self.rows],
        }


def difference(before: Chosen, after: Chosen) -> Difference:
    """Compare two traces. Raises ``BadDataError`` when their waves can't be counted."""
    for chosen in (before, after):
        if not chosen.block.waves:
            raise BadDataError(
                f"the thread trace in {chosen.folder} can't be compared: it has no wave files",
                next_step="keep the se*_wv*.json files of the decoded folder",
            )
    return Difference(_figures(before.block, after.block), _rows(before, after))


def _figures(before: AttPart, after: AttPart) -> dict[str, tuple[float | None, float | None]]:
    figures = {name: (getattr(before, name), getattr(after, name)) for name in _FIGURES}
    figures["instructions_per_wave"] = (
        _per_wave(before, before.instructions),
        _per_wave(after, after.instructions),
    )
    figures["cycles_per_wave"] = (_per_wave(before, _total(before)), _per_wave(after, _total(after)))
    for name in ("memory_wait_fraction", "barrier_fraction", "pipe_backpressure_fraction"):
        figures[name] = tuple(getattr(p.stall_split, name, None) for p in (before, after))  # type: ignore[assignment]
    return dict(sorted(figures.items()))


def _total(part: AttPart) -> int | None:
    return part.cycles.total if part.cycles else None


def _per_wave(part: AttPart, value: int | None) -> float | None:
    return None if value is None else value / part.waves


def _rows(before: Chosen, after: Chosen) -> tuple[ChangedRow, ...]:
    old = [entry for entry in instructions_of(before) if entry.hits]
    new = [entry for entry in instructions_of(after) if entry.hits]
    matcher = SequenceMatcher(None, [e.isa for e in old], [e.isa for e in new], autojunk=False)
    changed_rows: list[ChangedRow] = []
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind == "equal":
            changed_rows += [_row(a, b, before, after) for a, b in zip(old[i1:i2], new[j1:j2], strict=True)]
        else:
            changed_rows += [_row(a, None, before, after) for a in old[i1:i2]]
            changed_rows += [_row(None, b, before, after) for b in new[j1:j2]]
    changed = [row for row in changed_rows if row.change]
    return tuple(sorted(changed, key=lambda r: (-abs(r.change), r.line_before or 0, r.line_after or 0)))


def _row(old: AttInstruction | None, new: AttInstruction | None, before: Chosen, after: Chosen) -> ChangedRow:
    some = old or new
    assert some is not None
    return ChangedRow(
        isa=some.isa,
        line_before=old.line if old else None,
        line_after=new.line if new else None,
        before=_cycles(old, before.block.waves),
        after=_cycles(new, after.block.waves),
    )


def _cycles(entry: AttInstruction | None, waves: int) -> float | None:
    return None if entry is None else (entry.latency + (entry.idle or 0)) / waves
