"""A comparison as text for people: one aligned table, one-sided kernels, the answer."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rpl_analysis.text import duration_ns, fit_table, one_unit
from rpl_compare.comparison.model import item_name, kernel_names, one_line
from rpl_core.text import counted, format_table, shorten, wrap_lines
from rpl_measure.rank_tests import fewest_pairs

if TYPE_CHECKING:
    from rpl_compare.contract import (
        CompareDocument,
        HistoryDocument,
        HistoryItem,
        ItemPart,
        OneSidedKernel,
        SidePart,
    )

    _Named = ItemPart | HistoryItem | OneSidedKernel

#: Pairs that `rpl compare --interleaved` measures at most where nobody says how many.
USUAL_PAIRS = 30
#: Small kernels beyond these are counted, not listed; the document holds them all (chosen).
_SMALL_SHOWN = 10
_COLUMNS = ("", "BASE", "NEW", "change", "interval", "noise", "detectable", "verdict")
_RIGHT = _COLUMNS[1:-1]


def compare_text(document: CompareDocument, form: str = "short", width: int | None = None) -> str:
    """The whole comparison, ending with a line feed; ``form`` is that of kernel names.

    With a ``width`` lines are broken there, and columns for which there is no room stand in a second table.
    """
    names = document_names((*document.kernels, *document.only_base, *document.only_new), form)
    medians = [
        side.median_ns
        for item in (*document.application, *document.kernels)
        for side in (item.base, item.new)
    ]
    one_sided = (kernel.median_ns for kernel in (*document.only_base, *document.only_new))
    with one_unit(*medians, *one_sided):
        tables = (_table(document, names, width), *_one_sided(document, names, width))
    text = "\n".join([*_head(document), "", *tables, "", *answer_lines(document)]) + "\n"
    return text if width is None else wrap_lines(text, width)


def _head(document: CompareDocument) -> Iterator[str]:
    method = document.method
    for side in (document.base, document.new):
        yield f"{side.label.upper():<5} {_described(side)}"
    how = counted(method.pairs, "interleaved pair") if method.mode == "interleaved" else "unpaired runs"
    timed = any(item.kind == "process_time" for item in document.application)
    what = "wall clock of the process" if timed else f"{method.statistic} of each kernel's dispatches per run"
    yield (
        f"{how}, {what}, alpha {method.alpha:g} "
        f"({method.correction.capitalize()} over {counted(document.gate.gated_items, 'deciding item')})"
    )


def _described(side: SidePart) -> str:
    parts = [
        counted(side.runs, "run"),
        counted(side.processes, "process", "processes") if side.processes > 1 else "",
        side.device or "",
        f"only the ranges {shorten(side.range, 40)!r}" if side.range else "",
    ]
    parts += [f"[{side.origin.upper()} data, not a measurement]" if side.origin != "measured" else ""]
    parts += [shorten(" ".join(side.command), 60)]
    return one_line(", ".join(part for part in parts if part))


def _table(document: CompareDocument, names: dict[str, str], width: int | None) -> str:
    gated = [item for item in (*document.application, *document.kernels) if item.gated]
    others = [item for item in (*document.application, *document.kernels) if not item.gated]
    shown = [*gated, *others[:_SMALL_SHOWN]]
    rows = [_row(item, names) for item in shown]
    text = format_table(_COLUMNS, rows, right=_RIGHT) if width is None else _narrow_table(rows, width)
    left_out = len(others) - len(others[:_SMALL_SHOWN])
    more = counted(left_out, "more item that does", "more items that do")
    return text if not left_out else f"{text}\n({more} not decide: see --json)"


def _narrow_table(rows: Sequence[Sequence[str]], width: int) -> str:
    """The verdicts, then in a table of its own what there is no room for beside them."""
    empty = [i for i in range(1, len(_COLUMNS)) if all(row[i] == "-" for row in rows)]
    told = [i for i in range(len(_COLUMNS)) if i not in empty]
    columns, rows = [_COLUMNS[i] for i in told], [[row[i] for i in told] for row in rows]
    droppable = [title for title in ("detectable", "noise", "interval", "BASE", "NEW") if title in columns]
    text, lost = fit_table(columns, rows, width, right=_RIGHT, droppable=droppable)
    if lost:
        kept = [columns.index(title) for title in ("", *lost)]
        further = [[row[i] for i in kept] for row in rows]
        text += "\n\n" + fit_table(["", *lost], further, width, right=lost)[0]
    folded = ", ".join(_COLUMNS[i] for i in empty)
    return f"{text}\n(no {folded}: unknown for every row)" if folded else text


def _row(item: ItemPart, names: dict[str, str]) -> Sequence[str]:
    return (
        ("" if item.gated else "  ") + label(item, names),
        duration_ns(item.base.median_ns),
        duration_ns(item.new.median_ns),
        _change(item.change),
        f"{_change(_minus_one(item.ratio_low))} .. {_change(_minus_one(item.ratio_high))}"
        if item.ratio_low is not None
        else "-",
        "-" if item.noise is None else f"{item.noise:.1%}",
        "-" if item.minimum_detectable_change is None else f"{item.minimum_detectable_change:.1%}",
        item.verdict if item.gated else f"({item.verdict})",
    )


def label(item: ItemPart | HistoryItem, names: dict[str, str]) -> str:
    """Application times in words, kernels by their short name."""
    return item_name(item.kind, item.name, names)


def document_names(kernels: Iterable[_Named], form: str) -> dict[str, str]:
    """How all kernels of a document are called, by recorded name."""
    return kernel_names((kernel.name for kernel in kernels), form)


def _minus_one(ratio: float | None) -> float | None:
    return None if ratio is None else ratio - 1


def _change(fraction: float | None) -> str:
    return "-" if fraction is None else f"{fraction:+.2%}"


def _one_sided(document: CompareDocument, names: dict[str, str], width: int | None) -> Iterator[str]:
    for title, kernels in (("only in BASE", document.only_base), ("only in NEW", document.only_new)):
        if kernels:
            yield ""
            yield f"{title} ({len(kernels)}):"
            yield format_table(
                ("kernel", "time", "launches", "share"),
                [_one_sided_row(k, names[k.name]) for k in kernels[:20]],
                right=("time", "launches", "share"),
                width=width,
            )


def _one_sided_row(kernel: OneSidedKernel, name: str) -> Sequence[str]:
    share = "-" if kernel.share is None else f"{kernel.share:.1%}"
    return name, duration_ns(kernel.median_ns), f"{kernel.launches:g}", share


_ANSWERS = {
    "pass": "PASS",
    "regression": "REGRESSION",
    "inconclusive": "CANNOT TELL",
    "no_verdict": "NO VERDICT",
}


def answer_lines(document: CompareDocument) -> Iterator[str]:
    """The verdict, what it rests on, and how to measure enough where that is all that lacks."""
    gate = document.gate
    worst = "" if gate.worst_change is None else f"; worst change {gate.worst_change:+.2%}"
    yield f"{_ANSWERS[gate.outcome]} (limit {100 * gate.fail_above:g} %{worst})"
    yield from _reasons(gate.reasons)
    yield from _next_step(document)


def _next_step(document: CompareDocument) -> Iterator[str]:
    """The commands that measure enough, where too few runs are all that stands in the way of an answer."""
    sides = (document.base, document.new)
    if document.gate.outcome != "inconclusive":
        return
    needed = _enough(document)
    base, new = (one_line(shlex.join(side.command)) for side in sides)
    if not base or not new or base == new:  # recordings of one command line are of two builds of it
        base, new = (f"COMMAND_OF_{side.label.upper()}" for side in sides)
    if document.method.mode != "interleaved" or needed > (document.method.pairs or 0):
        quoted = f"--base {shlex.quote(base)} --new {shlex.quote(new)}"
        yield f"  next: rpl compare --interleaved {quoted} --pairs {needed}"


def _enough(document: CompareDocument) -> int:
    """Pairs with which every open item can get a verdict at its noise."""
    method, items = document.method, (*document.application, *document.kernels)
    least = fewest_pairs(method.alpha / max(1, document.gate.gated_items) / 2)
    if method.mode != "interleaved":
        least = max(least, USUAL_PAIRS)  # several looks share alpha; their number is not known yet
    still_open = (item for item in items if item.gated and item.verdict == "inconclusive")
    return max(least, *(item.runs_needed or 0 for item in still_open), 0)


def _reasons(reasons: Sequence[str]) -> Iterator[str]:
    for reason in reasons[:8]:
        yield f"  {one_line(shorten(reason, 500))}"
    if len(reasons) > 8:
        yield f"  ... and {len(reasons) - 8} more"


def history_text(document: HistoryDocument, form: str = "short", width: int | None = None) -> str:
    """Steps of all items with one, then the answer; ends with a line feed."""
    items = [*document.application, *document.kernels]
    names = document_names(document.kernels, form)
    with one_unit(
        *(time for item in items for step in item.steps for time in (step.before_ns, step.after_ns))
    ):
        rows = [row for item in items for row in _history_rows(item, names)]
    columns = ("", "at entry", "before", "after", "change", "entries", "")
    table = format_table(columns, rows, right=columns[2:-1], width=width) if rows else "no step in any item"
    first, last = document.entries[0].name, document.entries[-1].name
    work = f", only the ranges {shorten(document.range, 40)!r}" if document.range else ""
    entries = counted(len(document.entries), "entry", "entries")
    head = f"{entries}, {one_line(first)} .. {one_line(last)}{one_line(work)}"
    answer = f"{_ANSWERS[document.outcome]} (limit {100 * document.fail_above:g} %)"
    text = "\n".join([head, "", table, "", answer, *_reasons(document.reasons)]) + "\n"
    return text if width is None else wrap_lines(text, width)


def _history_rows(item: HistoryItem, names: dict[str, str]) -> Iterator[Sequence[str]]:
    for step in item.steps:
        yield (
            label(item, names),
            shorten(one_line(step.entry), 40),
            duration_ns(step.before_ns),
            duration_ns(step.after_ns),
            _change(step.change),
            f"{step.entries_before}+{step.entries_after}",
            "" if step.confirmed else "one entry only",
        )
