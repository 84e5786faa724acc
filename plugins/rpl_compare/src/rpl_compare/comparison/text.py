"""A comparison as text for people: one aligned table, one-sided kernels, the answer."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rpl_analysis.text import duration_ns, fit_table, one_unit
from rpl_compare.comparison.judging import item_name, kernel_names, one_line
from rpl_core.errors import RplError
from rpl_core.text import counted, format_table, readable, shorten, wrap_lines
from rpl_core.values import frozen
from rpl_measure.rank_tests import fewest_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from rpl_compare.comparison import Comparison
    from rpl_compare.contract import (
        CompareDocument,
        HistoryDocument,
        HistoryItem,
        ItemPart,
        OneSidedKernel,
        SidePart,
        StepPart,
    )
    from rpl_core.model.recording import Recording
    from rpl_core.plugins.host import PluginHost
    from rpl_measure.side import Side

    _Named = ItemPart | HistoryItem | OneSidedKernel

#: Pairs that `rpl compare --interleaved` measures at most where nobody says how many.
USUAL_PAIRS = 30
#: Small kernels beyond these are counted, not listed; the document holds them all (chosen).
_SMALL_SHOWN = 10
_COLUMNS = ("", "BASE", "NEW", "change", "interval", "noise", "detectable", "verdict")
_FIGURES = _COLUMNS[1:-1]


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
    text = format_table(_COLUMNS, rows, right=_FIGURES) if width is None else _narrow_table(rows, width)
    left_out = len(others) - len(others[:_SMALL_SHOWN])
    more = counted(left_out, "more item that does", "more items that do")
    return text if not left_out else f"{text}\n({more} not decide: see --json)"


def _narrow_table(rows: Sequence[Sequence[str]], width: int) -> str:
    """The verdicts, then in a table of its own what there is no room for beside them."""
    empty = [i for i in range(1, len(_COLUMNS)) if all(row[i] == "-" for row in rows)]
    told = [i for i in range(len(_COLUMNS)) if i not in empty]
    columns, rows = [_COLUMNS[i] for i in told], [[row[i] for i in told] for row in rows]
    droppable = [title for title in ("detectable", "noise", "interval", "BASE", "NEW") if title in columns]
    text, lost = fit_table(columns, rows, width, right=_FIGURES, droppable=droppable)
    if lost:
        moved = [columns.index(title) for title in ("", *lost)]
        further = [[row[i] for i in moved] for row in rows]
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
    # Pairs with which every open item can get a verdict at its noise.
    method, items = document.method, (*document.application, *document.kernels)
    least = fewest_pairs(method.alpha / max(1, document.gate.gated_items) / 2)
    if method.mode != "interleaved":
        least = max(least, USUAL_PAIRS)  # several looks share alpha; their number is not known yet
    still_open = (item for item in items if item.gated and item.verdict == "inconclusive")
    needed = max(least, *(item.runs_needed or 0 for item in still_open), 0)
    base, new = (one_line(shlex.join(side.command)) for side in sides)
    if not base or not new or base == new:  # recordings of one command line are of two builds of it
        base, new = (f"COMMAND_OF_{side.label.upper()}" for side in sides)
    if document.method.mode != "interleaved" or needed > (document.method.pairs or 0):
        quoted = f"--base {shlex.quote(base)} --new {shlex.quote(new)}"
        yield f"  next: rpl compare --interleaved {quoted} --pairs {needed}"


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


# The page of ``rpl compare --html``: both sides, the answer, a row per item, both rooflines.

#: Rows of the table; the document holds all (chosen).
_MOST_ROWS = 60
_FACTS = ("Command", "Device", "Host", "Recorded", "Runs", "Origin", "Files")


@frozen
class ItemRow:
    """Figures as fractions and ns; ``css`` is the colour of a kernel."""

    name: str
    css: str | None
    item: ItemPart
    runs: Runs | None
    forest: Forest


def compare_page(
    comparison: Comparison,
    document: CompareDocument,
    recordings: Sequence[Recording],
    host: PluginHost,
    form: str,
) -> str:
    """The whole page. ``recordings`` of BASE and NEW are analysed for their rooflines."""
    from rpl_report.html.page import load_assets, page_environment

    names = document_names((*document.kernels, *document.only_base, *document.only_new), form)
    rooflines, colours, reason = _rooflines(recordings, host, names)
    answer, *reasons = answer_lines(document)
    rows = _rows(document, names, colours)
    facts = [_facts(comparison, part, of) for part, of in zip(_parts(document), recordings, strict=True)]
    return (
        page_environment("rpl_compare")
        .get_template("compare.html.j2")
        .render(
            assets=load_assets(),
            document=document,
            title=_title(document),
            answer=answer,
            reasons=[readable(line.strip(), 600) for line in reasons],
            facts=tuple(zip(_FACTS, *facts, strict=True)),
            rows=rows[:_MOST_ROWS],
            left_out=max(0, len(rows) - _MOST_ROWS),
            longest_ns=_longest_ns(rows, document),
            one_sided=_one_sided_rows(document, names),
            rooflines=rooflines,
            reason=reason,
        )
    )


def _parts(document: CompareDocument) -> tuple[SidePart, SidePart]:
    return document.base, document.new


def _title(document: CompareDocument) -> str:
    """Both programs, or the devices where the recordings name no program."""
    called = [
        readable(side.command[0].rpartition("/")[2], 60) if side.command else "" for side in _parts(document)
    ]
    what = called[0] if called[0] == called[1] else f"{called[0] or 'BASE'} and {called[1] or 'NEW'}"
    return f"{what or 'BASE and NEW'} compared on {readable(document.new.device or 'an unknown device', 80)}"


def _facts(comparison: Comparison, part: SidePart, recording: Recording) -> tuple[str, ...]:
    side: Side = comparison.base if part.label == "base" else comparison.new
    manifest = side.manifests[0] if side.manifests else None
    version, collector = part.collector_version or "", part.collector or ""
    tool = version if version.startswith(collector) else f"{collector} {version}"
    recorded = f"{manifest.created_utc} by {tool}" if manifest else ", ".join(part.formats)
    hosts = sorted({p.hostname for trace in recording.traces for p in trace.processes if p.hostname})
    files = list(dict.fromkeys(artefact.path for artefact in part.provenance.artefacts))
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    runs = f"{part.runs}" + (
        f", {counted(part.processes, 'process', 'processes')} each" if part.processes > 1 else ""
    )
    facts = (
        shlex.join(part.command) or "not recorded",
        part.device or "not recorded",
        ", ".join(hosts) or "not recorded",
        recorded,
        runs,
        part.origin if part.origin == "measured" else f"{part.origin}: not a measurement of hardware",
        f"{', '.join(files[:3])}{more}" if files else "-",
    )
    return tuple(readable(text, 300) for text in facts)


def _rows(
    document: CompareDocument, names: dict[str, str], colours: Mapping[str, str]
) -> tuple[ItemRow, ...]:
    """What decides comes first, as in the text."""
    items = sorted((*document.application, *document.kernels), key=lambda item: not item.gated)
    limit = document.gate.fail_above
    scale = forest_scale((item for item in items if item.gated), limit)
    return tuple(
        ItemRow(
            name=item_name(item.kind, item.name, names),
            css=colours.get(item.name) if item.kind == "kernel" else None,
            item=item,
            runs=runs_of(item),
            forest=forest_of(item, scale, limit),
        )
        for item in items
    )


def _longest_ns(rows: Sequence[ItemRow], document: CompareDocument) -> float:
    """The longest time that the page's tables show: it gives all of them their unit."""
    sides = [side.median_ns for row in rows for side in (row.item.base, row.item.new)]
    runs = [row.runs.last for row in rows if row.runs]
    alone = [kernel.median_ns for kernel in (*document.only_base, *document.only_new)]
    return max((ns for ns in (*sides, *runs, *alone) if ns is not None), default=0.0)


def _one_sided_rows(
    document: CompareDocument, names: dict[str, str]
) -> tuple[tuple[str, tuple[tuple[str, OneSidedKernel], ...]], ...]:
    sides = (("BASE", document.only_base), ("NEW", document.only_new))
    return tuple(
        (side, tuple((names[k.name], k) for k in kernels[:_MOST_ROWS])) for side, kernels in sides if kernels
    )


def _rooflines(
    recordings: Sequence[Recording], host: PluginHost, names: Mapping[str, str]
) -> tuple[tuple[Any, ...], Mapping[str, str], str | None]:
    """A view per side, the colours of kernels, or why there are none."""
    from rpl_report.html.roofline import rooflines_of

    try:
        views, colours = rooflines_of([_documents(recording, host) for recording in recordings], names)
    except RplError as error:
        return (), {}, error.one_line()
    return views, colours, None


def _documents(recording: Recording, host: PluginHost) -> Mapping[str, BaseModel]:
    from rpl_core.pipeline import AnalysisRequest, analyse

    return analyse(recording, AnalysisRequest(), host).by_name()


# The page of ``rpl compare --history --html``: the metric over the entries, with its steps.

#: Plots on the page; the document holds all items (chosen).
_MOST_PLOTS = 40
#: The part of the drawing, 800 by 150, in which points lie.
_LEFT, _RIGHT, _TOP, _BOTTOM = 8.0, 792.0, 14.0, 136.0


@frozen
class Point:
    """One entry; ``text`` is what the pointer and a screen reader get."""

    x: float
    y: float
    text: str


@frozen
class Step:
    x: float
    before: float  # heights of both levels
    after: float
    part: StepPart
    slower: bool


@frozen
class Plot:
    """``lines`` join neighbouring entries that hold the item; ``limit`` is the height of the allowed time."""

    name: str
    item: HistoryItem
    points: tuple[Point, ...]
    lines: tuple[tuple[Point, Point], ...]
    steps: tuple[Step, ...]
    least: float
    most: float


def history_page(document: HistoryDocument, names: Mapping[str, str]) -> str:
    """``names`` says how kernels are called."""
    from rpl_report.html.page import load_assets, page_environment

    items = sorted((*document.application, *document.kernels), key=lambda item: not item.steps)
    times = [time for item in items for time in item.values_ns if time is not None]
    return (
        page_environment("rpl_compare")
        .get_template("history.html.j2")
        .render(
            assets=load_assets(),
            document=document,
            title=f"History of {len(document.entries)} entries",
            plots=[_plot(item, document, names) for item in items[:_MOST_PLOTS] if any(item.values_ns)],
            left_out=max(0, len(items) - _MOST_PLOTS),
            longest_ns=max(times, default=0.0),
        )
    )


def _plot(item: HistoryItem, document: HistoryDocument, names: Mapping[str, str]) -> Plot:
    times = [time for time in item.values_ns if time is not None]
    least, most = min(times), max(times)
    room = max(most - least, 0.02 * most)  # noise of less than 2 % shall not fill the picture
    low = (least + most - room) / 2

    def height(time: float) -> float:
        return _BOTTOM - (time - low) / room * (_BOTTOM - _TOP)

    def place(index: int) -> float:
        return _LEFT + (_RIGHT - _LEFT) * index / max(1, len(item.values_ns) - 1)

    known = [
        None if time is None else Point(place(i), height(time), "") for i, time in enumerate(item.values_ns)
    ]
    points = [
        Point(point.x, point.y, f"{readable(entry.name, 80)}: {time / times[0] - 1:+.2%} against the first")
        for point, entry, time in zip(known, document.entries, item.values_ns, strict=True)
        if point is not None and time is not None
    ]
    order = {entry.name: place(i) for i, entry in enumerate(document.entries)}
    return Plot(
        name=item_name(item.kind, item.name, names),
        item=item,
        points=tuple(points),
        lines=tuple((a, b) for a, b in pairwise(known) if a is not None and b is not None),
        steps=tuple(
            Step(order[step.entry], height(step.before_ns), height(step.after_ns), step, step.change > 0)
            for step in item.steps
        ),
        least=least,
        most=most,
    )


# Drawings of one item: the times of all its runs on both sides, and its change with the interval.

#: Units of a drawing from end to end, with room for the marks at both.
_WIDTH, _MARGIN = 300.0, 8.0


@frozen
class Runs:
    """Places of the runs and the medians; both sides share the axis from ``first`` to ``last`` (ns)."""

    base: tuple[float, ...]
    new: tuple[float, ...]
    base_median: float | None
    new_median: float | None
    first: float
    last: float


@frozen
class Forest:
    """Places of the change, of its interval, of no change and of the allowed slow-down."""

    change: float | None
    low: float | None
    high: float | None
    zero: float
    limit: float


@frozen
class Scale:
    """From fractions of change to places; what lies outside is drawn at the end."""

    low: float
    high: float

    def __call__(self, value: float) -> float:
        inside = min(max(value, self.low), self.high)
        return _MARGIN + (inside - self.low) / (self.high - self.low) * (_WIDTH - 2 * _MARGIN)


def runs_of(item: ItemPart) -> Runs | None:
    """``None`` where no run has a time."""
    values = [*item.base.values_ns, *item.new.values_ns]
    if not values:
        return None
    first, last = min(values), max(values)
    scale = Scale(first, last if last > first else first + 1)

    def median(value: float | None) -> float | None:
        return None if value is None else scale(value)

    return Runs(
        tuple(map(scale, item.base.values_ns)),
        tuple(map(scale, item.new.values_ns)),
        median(item.base.median_ns),
        median(item.new.median_ns),
        first,
        last,
    )


def forest_scale(items: Iterable[ItemPart], limit: float) -> Scale:
    """One axis for all items, around no change, at least to twice the allowed slow-down."""
    known = [value for item in items for value in (item.ratio, item.ratio_low, item.ratio_high) if value]
    widest = max([2 * limit, *(abs(ratio - 1) for ratio in known)])
    return Scale(-widest, widest)


def forest_of(item: ItemPart, scale: Scale, limit: float) -> Forest:
    def place(ratio: float | None) -> float | None:
        return None if ratio is None else scale(ratio - 1)

    return Forest(place(item.ratio), place(item.ratio_low), place(item.ratio_high), scale(0), scale(limit))
