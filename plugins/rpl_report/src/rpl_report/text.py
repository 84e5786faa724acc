"""The text report: the verdict, one line per kernel, the critical path, then what plugins add."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from attrs import evolve

from rpl_analysis.options import NAMES
from rpl_analysis.text import (
    UNKNOWN,
    between,
    duration_ns,
    faster_application,
    fit_table,
    in_unit,
    marked,
    occupancy_share,
    one_unit,
    percent,
    shorten_apart,
    work_name,
)
from rpl_core.cli.output import USUAL_WIDTH
from rpl_core.interfaces.section import Paragraph, Renderer, RenderRequest, SectionRequest
from rpl_core.text import counted, did_you_mean, printable, readable, wrap_lines
from rpl_core.values import frozen
from rpl_report.documents import claims_of, device_names, report_documents, text_sections
from rpl_report.options import ALL, KERNEL, TOP, chosen_kernels
from rpl_report.verdict import NOTEWORTHY, dominance_matters, is_notable, verdict_of

if TYPE_CHECKING:
    from rpl_analysis.contracts.analysis import AnalysisDocument, KernelAnalysis
    from rpl_analysis.contracts.dag import (
        ClockDomainPart,
        DagDocument,
        DominancePart,
        DominantWorkPart,
        ForecastPart,
        SpeedupForecastPart,
    )
    from rpl_analysis.contracts.profile import (
        AddedTime,
        CallOverhead,
        KernelProfile,
        ProfileDocument,
        ResourcesPart,
    )
    from rpl_analysis.contracts.roofline import RooflineDocument, RooflinePart
    from rpl_core.interfaces.section import Table
    from rpl_core.model.metric import Metric
    from rpl_report.documents import AnsweredSection, ReportDocuments
    from rpl_report.verdict import Entry, Naming, Verdict


def section_text(section: AnsweredSection, width: int) -> str:
    """One section: as the plugin draws it, or its title above its blocks."""
    if section.problem is not None:
        return wrap_lines(readable(f"{section.title}: not shown: {section.problem}"), width)
    if section.own is not None:
        return wrap_lines(printable(section.own), width)
    blocks = (
        wrap_lines(printable(block.text), width) if isinstance(block, Paragraph) else _table(block, width)
        for block in section.blocks
    )
    return "\n".join((readable(section.title), *blocks))


def _table(table: Table, width: int) -> str:
    """Columns go from the last one on where the width does not allow all of them."""
    columns = [readable(column) for column in table.columns]
    text, lost = fit_table(
        columns,
        [[readable(cell) for cell in row] for row in table.rows],
        width,
        right=[readable(column) for column in table.right],
        droppable=columns[:0:-1],
    )
    return f"{text}\n(no room for {', '.join(lost)}: use a wider terminal)" if lost else text


_Part: TypeAlias = "tuple[int, str | None]"

LINES, WIDTH = 10, 80
_SHOWN = 3
#: What goes first where ten lines do not hold everything: (number of the entry, part), ``None``: all of it.
_GIVEN_UP: Sequence[_Part] = (
    (3, "why"),
    (2, "why"),
    (3, "step"),
    (2, "step"),
    (3, None),
    (1, "more"),
    (2, None),
    (1, "why"),
    (1, "brings"),
)
#: Where a sentence ends and another begins.
_SENTENCE = re.compile(r"(?<=[.])\s+(?=[A-Z])")


def verdict_text(verdict: Verdict, width: int = WIDTH) -> str:
    """The first entries with the caution before and the basis behind them.

    What ten lines do not hold is left out by whole sentences, the last subject first: no sentence is cut.
    """
    width = min(width, WIDTH)
    before, behind = _filled(verdict.caution, width), _filled(verdict.basis, width)
    shown = [(number, entry) for number, entry in enumerate(verdict.entries[:_SHOWN], 1)]

    def lines(gone: set[_Part]) -> list[str]:
        told = [line for number, entry in shown for line in _lines(number, entry, gone, width)]
        return [*before, *told, *behind]

    gone: set[_Part] = set()
    for part in _GIVEN_UP:
        if len(lines(gone)) <= LINES:
            break
        gone.add(part)
    for part in reversed(_GIVEN_UP):  # what was given up before a larger part was may fit again
        if part in gone and len(lines(gone - {part})) <= LINES:
            gone.remove(part)
    return "\n".join(lines(gone))


def _lines(number: int, entry: Entry, gone: set[_Part], width: int) -> Iterator[str]:
    if (number, None) in gone:
        return
    said = [entry.head, *(getattr(entry, part) for part in ("brings", "why") if (number, part) not in gone)]
    step = entry.next_step() if (number, "step") not in gone else ""
    if (number, "more") in gone:
        step = _SENTENCE.split(step, maxsplit=1)[0]
    if entry.same_as:  # needs no line of its own
        said.append(step)
        step = ""
    step_shown = (number, "step") not in gone or not entry.step  # a command alone is all that there is to do
    command = f"Run: {entry.command}" if entry.command and step_shown else ""
    yield from _filled(" ".join(said), width, f"{number}. ")
    yield from _filled(step, width, "   ")
    yield from _filled(command, width, "   ")


def _filled(text: str, width: int, first: str = "") -> list[str]:
    """``text`` in lines, those behind the first as far in as ``first`` is long."""
    if not text:
        return []
    return textwrap.wrap(
        " ".join(printable(text).split()),
        width,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=True,
        break_on_hyphens=False,
    )


class TextRenderer(Renderer):
    name = "text"
    summary = "aligned tables for a terminal or a log"
    suffix = ".txt"

    def render(self, request: RenderRequest) -> str:
        documents = report_documents(request.documents)
        with one_unit(*documents.longest_ns()):
            return self._text(documents, request)

    def _text(self, documents: ReportDocuments, request: RenderRequest) -> str:
        names = documents.shown_names(request.options[NAMES])
        short = shorten_apart(names.values(), NAME_WIDTH)
        asked = SectionRequest(
            documents=MappingProxyType(request.documents),
            width=request.width,
            short_names={name: short[shown] for name, shown in names.items()},
        )
        verdict = verdict_of(documents, _called(asked.short_names), claims_of(request.sections, asked))
        head, path = _head(documents.profile, request), path_section(documents.dag, names, request.width)
        kernels = kernel_table(documents.profile, documents.analysis, names, request)
        roofline = documents.roofline
        roofline_note = (
            f"roofline: {roofline.status.replace('_', ' ')}. {printable(roofline.reason or '')}"
            if roofline.status != "available"
            else ""
        )
        sections = [
            verdict_text(verdict, request.width),
            *((path, head, kernels) if request.path_first else (head, kernels, path)),
            *(section_text(each, request.width) for each in text_sections(request.sections, asked)),
            corrections_section(roofline, documents.analysis, names, request.width),
            roofline_note,
        ]
        text = "\n\n".join(section for section in sections if section) + "\n"
        return wrap_lines(text, request.width)


def _called(short: Mapping[str, str]) -> Naming:
    """The names of this report; those of copies in words."""

    def called(name: str, kind: str) -> str:
        return (
            readable(work_name(name, kind))
            if kind == "copy"
            else short.get(name) or readable(name, NAME_WIDTH)
        )

    return called


def _head(profile: ProfileDocument, request: RenderRequest) -> str:
    gpu, stability = profile.gpu, profile.stability
    device = device_names(profile) or f"unknown ({gpu.reason or 'not recorded'})"
    time = "process time" if profile.runtime_ms is not None and not profile.launches else "kernel time"
    lines = [("command", shlex.join(request.command))] if request.command else []
    lines += [("run", f"{request.recorded}{_hosts(profile)}")] if request.recorded else []
    lines += [("device", device), (time, _runtime(profile))]
    if profile.launches:
        lines.append(("launches", _launches(profile.launches, len(profile.kernels))))
    if stability.runs:
        spread = (
            f"CV {percent(stability.cv, 2)} ({stability.classification})"
            if stability.cv is not None
            else "one run"
        )
        lines.append(("stability", f"{stability.runs} runs, {spread}" if stability.runs > 1 else spread))
    if profile.call_overhead is not None:
        lines.append(("API calls", _overhead(profile.call_overhead)))
    if profile.provenance and profile.provenance.origin != "measured":
        lines.append(("origin", f"{profile.provenance.origin}: not a measurement of hardware"))
    if profile.range:
        lines.append(("range", f"only the work that ranges called {profile.range[:60]!r} launched"))
    if profile.incomplete:
        lines.append(("incomplete", profile.incomplete))
    width = max(12, max(len(label) for label, _ in lines) + 1)
    return "\n".join(f"{label:<{width}}{printable(text)}" for label, text in lines)


def _hosts(profile: ProfileDocument) -> str:
    """Where it was recorded: clocks of recordings that know their host are called HOST/NUMBER."""
    gpus = profile.ranks.gpus if profile.ranks else ()
    hosts = sorted({gpu.node.rpartition("/")[0] for gpu in gpus} - {""})
    return f", on {', '.join(hosts)}" if hosts else ""


def _launches(launches: float, kernels: int) -> str:
    """Mean per run; a fraction shows that the runs differ."""
    noun = "kernel" if kernels == 1 else "different kernels"
    return f"{launches:,.10g} of {kernels} {noun} per run"


def _runtime(profile: ProfileDocument) -> str:
    if profile.runtime_ms is None:
        return f"unknown: {profile.runtime_reason}"
    text = duration_ns(profile.runtime_ms * 1e6)
    if profile.runtime_exactness == "estimate" and profile.runtime_range_ms:
        low, high = profile.runtime_range_ms
        ends = between(duration_ns(low * 1e6), duration_ns(high * 1e6))
        text += f" (estimate, {ends} over the counter passes)"
    return f"{text}  [{profile.runtime_source}]"


def _overhead(overhead: CallOverhead) -> str:
    """What recording them added to the runs that times come from."""
    kernels = f"kernel time {_added(overhead.kernel_time)}"
    makespan = f", makespan {_added(overhead.makespan)}" if overhead.makespan else ""
    runs = overhead.runs_with_calls
    with_calls = f"{runs} runs with them" if runs > 1 else "one run with them"
    return f"recorded: {kernels}{makespan}, {with_calls} against one without"


def _added(time: AddedTime) -> str:
    if time.added_range is None:
        return f"{time.added:+.1%}"
    low, high = time.added_range
    return f"{time.added:+.1%} ({low:+.1%} to {high:+.1%})"


def corrections_section(
    roofline: RooflineDocument,
    analysis: AnalysisDocument,
    names: Mapping[str, str],
    width: int = USUAL_WIDTH,
) -> str:
    """A table of the kernels whose label hangs on the work of idle lanes, else the empty text."""
    placed = {kernel.name: kernel for kernel in roofline.kernels}
    rows = [
        (
            names.get(label.kernel, label.kernel),
            _figure(placed[label.kernel].flops),
            _figure(placed[label.kernel].corrections.get("active_lanes")),
            printable(label.label_by_active_lanes),
        )
        for label in analysis.kernels
        if label.label_by_active_lanes and label.kernel in placed
    ]
    if not rows:
        return ""
    columns = ("FLOPs per launch", "counted", "est.: active lanes", "label then")
    right, droppable = columns[1:3], columns[1:2]
    return fit_table(columns, rows, width, right=right, droppable=droppable, longest_name=NAME_WIDTH)[0]


def _figure(metric: Metric | None) -> str:
    return UNKNOWN if metric is None else marked(metric.value, metric.exactness, metric.upper)


# The table of kernels.

NAME_WIDTH = 48
_BAR = 8
#: What a column without any figure holds; it is left out.
_NOTHING = (UNKNOWN, "unclassified (none)", "-/-/0")


@frozen
class Column:
    """``cell`` makes the text from a kernel and its label.

    ``dropped`` says when the column goes where the width does not allow all: 1 first; ``None``: it stays.
    ``timed``: cells are durations, whose unit stands in the heading.
    """

    title: str
    cell: Callable[[KernelProfile, KernelAnalysis | None], str]
    right: bool = True
    dropped: int | None = None
    timed: bool = False


def _runtime_ns(kernel: KernelProfile) -> float | None:
    return None if kernel.runtime_ms is None else kernel.runtime_ms * 1e6


def _bandwidth(roofline: RooflinePart | None) -> str:
    """GB/s; a rate above the memory ceiling is marked, since it is no HBM bandwidth."""
    above = roofline is not None and "hbm" in roofline.exceeds_ceiling
    return _figure_of(roofline, "achieved_gbps") + (" (above HBM)" if above else "")


def _figure_of(roofline: RooflinePart | None, name: str) -> str:
    if roofline is None:
        return UNKNOWN
    return marked(getattr(roofline, name), roofline.exactness_of.get(name), roofline.upper_of.get(name))


def _resources(used: ResourcesPart) -> str:
    """Registers per work-item and per wave, bytes of LDS per workgroup; one dash where nothing is known.

    Where all kernels have no registers recorded and no LDS, the column says nothing either (``_NOTHING``).
    """
    counts = (used.vgpr_per_thread, used.sgpr_per_wave, used.lds_bytes)
    if all(count is None for count in counts):
        return UNKNOWN
    return "/".join(UNKNOWN if count is None else str(count) for count in counts)


def _label(label: KernelAnalysis | None) -> str:
    return f"{label.bottleneck} ({label.confidence})" if label else UNKNOWN


_COLUMNS = (
    Column("kernel", lambda k, _: k.name, right=False),
    Column("calls", lambda k, _: f"{k.launches:,.10g}", dropped=4),
    Column("time", lambda k, _: duration_ns(_runtime_ns(k)), timed=True),
    Column("share", lambda k, _: percent(k.time_share), dropped=9),
    Column("median", lambda k, _: duration_ns(k.median_ns), dropped=1, timed=True),
    Column("occup.", lambda k, _: occupancy_share(k.occupancy), dropped=6),
    Column("limiter", lambda k, _: k.occupancy.limiter or UNKNOWN, right=False, dropped=3),
    Column("VGPR/SGPR/LDS", lambda k, _: _resources(k.resources), dropped=2),
    Column("crit.", lambda k, _: percent(k.criticality_weight), dropped=8),
    Column("GB/s", lambda k, _: _bandwidth(k.roofline), dropped=7),
    Column("FLOP/B", lambda k, _: _figure_of(k.roofline, "operational_intensity"), dropped=5),
    Column("bottleneck", lambda _, label: _label(label), right=False),
)


def kernel_table(
    profile: ProfileDocument, analysis: AnalysisDocument, names: Mapping[str, str], request: RenderRequest
) -> str:
    """One line per kernel, with notes on what the width does not allow; the empty text without kernels.

    Columns in which nothing is known are folded into one line with the reason. Those for which there is no
    room stand in a second table. Times have the unit of the heading.
    """
    if not profile.kernels:
        return ""
    chosen = chosen_kernels(profile.kernels, names, request.options)
    if not chosen:
        wanted = request.options[KERNEL] or ""
        return (
            f"(no kernel's name holds {printable(wanted)}{printable(did_you_mean(wanted, names.values()))})"
        )
    labels = {entry.kernel: entry for entry in analysis.kernels}
    shown = chosen if request.options[ALL] else chosen[: request.options[TOP]]
    every = [
        (names.get(kernel.name, kernel.name), *_cells(kernel, labels.get(kernel.name), request))
        for kernel in shown
    ]
    told = [i for i in range(len(_COLUMNS)) if i == 0 or any(row[i] not in _NOTHING for row in every)]
    unit = in_unit(0)[1]
    columns = [evolve(c, title=f"{c.title} {unit}") if c.timed else c for c in (_COLUMNS[i] for i in told)]
    rows = [tuple(row[i] for i in told) for row in every]
    table, missed = _fitted(columns, rows, request.width)
    rest = chosen[len(shown) :]
    notes = [f"({_left_out(rest)}: --all shows them, profile.json holds them)"] if rest else []
    notes += _folded([_COLUMNS[i].title for i in range(len(_COLUMNS)) if i not in told], profile, request)
    if missed:
        left = [i for i, column in enumerate(columns) if column.title in missed]
        called = [line.split("  ", 1)[0] for line in table.splitlines()[1:]]  # as cut in the first table
        rows = [(name, *(row[i] for i in left)) for name, row in zip(called, rows, strict=True)]
        more, missed = _fitted([columns[i] for i in (0, *left)], rows, request.width)
        notes += ["", more]
    if missed:
        notes.append(f"(no room for {', '.join(missed)}: see profile.json, or use a wider terminal)")
    return "\n".join((table, *notes))


def _cells(kernel: KernelProfile, label: KernelAnalysis | None, request: RenderRequest) -> Iterator[str]:
    """The figures of one row; on a terminal the share of the time has a bar."""
    for column in _COLUMNS[1:]:
        cell = column.cell(kernel, label)
        if column.timed:
            cell = cell.partition(" ")[0]
        elif column.title == "share" and request.terminal and kernel.time_share is not None:
            cell = f"{cell} {bar(kernel.time_share, _BAR)}"
        yield cell


def bar(share: float, width: int) -> str:
    """A bar of ``width`` characters in eighths of a character, filled with blanks."""
    eighths = round(share * width * 8)
    part = " ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else ""
    return f"{'█' * (eighths // 8)}{part}".ljust(width)


def _left_out(kernels: Sequence[KernelProfile]) -> str:
    """How many kernels have no row, and how much time they take."""
    shares = [kernel.time_share for kernel in kernels]
    known = sum(share for share in shares if share is not None)
    share = f" with {percent(known)} of the time" if None not in shares else ""
    return f"{counted(len(kernels), 'more kernel')}{share}"


def _folded(titles: Sequence[str], profile: ProfileDocument, request: RenderRequest) -> Sequence[str]:
    """Columns without a figure, under the reason that explains them."""
    dag, roofline = request.documents.get("dag"), request.documents.get("roofline")
    resources = next((k.occupancy.reason for k in profile.kernels if k.occupancy.reason), None)
    reasons = {
        "crit.": getattr(dag, "reason", None),
        **dict.fromkeys(("GB/s", "FLOP/B"), getattr(roofline, "reason", None)),
        **dict.fromkeys(("occup.", "limiter"), resources),
        "VGPR/SGPR/LDS": "registers were not recorded",
        "bottleneck": "no rule is proven by what was recorded",
    }
    by_reason: dict[str, list[str]] = {}
    for title in titles:
        by_reason.setdefault(reasons.get(title) or "not recorded", []).append(title)
    return [f"(no {', '.join(same)}: {printable(reason)})" for reason, same in by_reason.items()]


def _fitted(
    columns: Sequence[Column], rows: Sequence[tuple[str, ...]], width: int
) -> tuple[str, Sequence[str]]:
    """The table in ``width``, and the titles of the columns that had no room."""
    ranked = sorted((column.dropped, column.title) for column in columns if column.dropped is not None)
    return fit_table(
        [column.title for column in columns],
        rows,
        width,
        right=[column.title for column in columns if column.right],
        droppable=[title for _, title in ranked],
        longest_name=NAME_WIDTH,
    )


# The critical path in the text report: its length, what the GPU did meanwhile, and what could be gained.


#: Kernels in the what-if table; dag.json holds more.
SHOWN_FORECASTS = 5
#: Calls that idle time is named by; dag.json holds all.
SHOWN_CALLS = 4


def path_section(
    dag: DagDocument, shown: Mapping[str, str] = MappingProxyType({}), width: int = USUAL_WIDTH
) -> str:
    """Everything the report says about the execution graph; ``shown`` is how kernels are called."""
    if dag.status != "available":
        return f"critical path  unknown: {printable(dag.reason or '')}"
    named = _Names(dag, shown)
    table = _what_if(dag, named, width)
    lines = (_length(dag, named), _bounds(dag), _host(dag), _spent(dag), table)
    return "\n".join(line for line in lines if line)


def _length(dag: DagDocument, named: _Names) -> str:
    path = f"critical path  {duration_ns(dag.critical_path_ns)} of {duration_ns(dag.makespan_ns)} makespan"
    work = dag.dominant_work
    if work is None:
        return path
    of_it = f"{path}, {percent(work.fraction)} of it in {named.of(work)}"
    most = work.application_ceiling_at_most if not dag.order_known else work.application_ceiling
    if most is not None and most < NOTEWORTHY:
        return f"{of_it}, without which the application would take as long{_doubt(dag)}"
    return f"{of_it}; at no cost of that the application would be {_ceiling(dag, work)}{_doubt(dag)}"


def _ceiling(dag: DagDocument, work: DominantWorkPart) -> str:
    least, most = work.application_ceiling, work.application_ceiling_at_most
    if least is None:
        return "nothing"
    if not dag.order_known:
        upper = "no limit" if most is None else f"{most:.3f}x"
        return f"{between(f'{least:.3f}x', upper)} as fast"
    # Without calls a gap counts as the time of what came before it, which the host may have needed anyway.
    return f"{'at most ' if dag.sync_info == 'none' else ''}{least:.3f}x as fast"


def _doubt(dag: DagDocument) -> str:
    """What the ceiling does not know, in its own line."""
    if not dag.order_known:
        missing = "no API calls" if dag.sync_info == "none" else "not all waits"
        return f" ({missing} recorded: which of the {dag.lanes} streams waited for which is unknown)"
    if dag.sync_info == "none":
        return " (no API calls recorded: every gap stays as it was)"
    return ""


def _bounds(dag: DagDocument) -> str:
    bounds = dag.bounds
    if bounds is None or dag.critical_path_ns is None:
        return ""
    most = bounds.any_order_ns or bounds.all_edges_ns
    if bounds.certain_only_ns == most:
        return ""
    last = "under any order of streams" if bounds.any_order_ns else "with guesses"
    return (
        f"  path between {duration_ns(bounds.certain_only_ns)} (certain dependencies only) "
        f"and {duration_ns(most)} ({last})"
    )


def _host(dag: DagDocument) -> str:
    """What gains rest on where more than one thread submits, or may: nothing recorded tells their order."""
    if (dag.host_threads or 0) > 1:
        return f"  gains hold while the {dag.host_threads} host threads submit in the same order"
    if not dag.order_known and dag.host_threads is None:
        return "  gains hold while the host submits in the same order, whatever its threads"
    return ""


def _spent(dag: DagDocument) -> str:
    """What the GPUs of the machine with the longest path did; the parts add up to the makespan."""
    machine = max(dag.clock_domains, key=lambda part: part.critical_path_ns, default=None)
    if machine is None or not machine.makespan_ns:
        return ""
    makespan, idle = machine.makespan_ns, machine.idle
    parts = [("kernels", machine.kernel_ns), ("copies alone", machine.copy_ns), ("idle", machine.idle_ns)]
    text = ", ".join(f"{name} {percent(ns / makespan)}" for name, ns in parts if ns)
    if idle is None or not machine.idle_ns:
        return f"  GPU time: {text}"
    causes = (
        ("host", idle.host_ns),
        ("waits", idle.sync_ns),
        ("probably copying (copies were not recorded)", idle.copying_ns),
        ("launch", idle.launch_ns),
        ("cause not recorded", idle.unattributed_ns),
    )
    named = ", ".join(f"{name} {percent(ns / makespan)}" for name, ns in causes if ns)
    return f"  GPU time: {text} ({named}){_host_calls(machine)}"


def _host_calls(machine: ClockDomainPart) -> str:
    """Which calls the host was in while the GPU idled, in shares of that."""
    shown = machine.idle_calls[:SHOWN_CALLS]
    if not shown:
        return ""
    named = [f"{printable(call.name) if call.name else 'no call'} {percent(call.share)}" for call in shown]
    rest = sum(call.share for call in machine.idle_calls[SHOWN_CALLS:])
    named += [f"others {percent(rest)}"] if rest else []
    return f"\n  of the idle time the host was in: {', '.join(named)}"


class _Names:
    """How kernels, copies and idle time are called in this section."""

    def __init__(self, dag: DagDocument, shown: Mapping[str, str]) -> None:
        self._shown = shown
        self._short = shorten_apart(shown.values(), NAME_WIDTH)
        self._copies = {symbol.name for symbol in dag.symbols if symbol.kind == "copy"}

    def of(self, part: DominantWorkPart | ForecastPart) -> str:
        return self._shown_name(part.name or "-", part.kind)

    def step(self, step: DominancePart) -> str:
        """Steps name a kernel or a copy direction; the list of symbols tells which."""
        name = step.dominant_symbol or "-"
        return self._shown_name(name, "copy" if name in self._copies else "kernel")

    def _shown_name(self, name: str, kind: str) -> str:
        if kind == "copy":
            return printable(work_name(name, kind))
        text = self._shown.get(name, printable(name))
        return self._short.get(text, text)


def _what_if(dag: DagDocument, named: _Names, width: int) -> str:
    """End-to-end speed-up of the application if one kernel were faster."""
    shown = [forecast for forecast in dag.forecasts if is_notable(forecast)][:SHOWN_FORECASTS]
    if not shown:
        return ""
    asked = [answer.speedup for answer in shown[0].speedups]
    labels = ["free" if speedup is None else f"{speedup:g}x" for speedup in asked]
    rows = [(named.of(forecast), *_gains(forecast, asked)) for forecast in shown]
    columns = ("what if faster by", *labels)
    if not dag.order_known:
        columns = ("what if faster by (at least - at most)", *labels)
    elif dag.sync_info == "none":
        columns = ("what if faster by (at most)", *labels)
    table, _ = fit_table(columns, rows, width, right=labels)
    return f"\n{table}{_shift(dag, named)}"


def _gains(forecast: ForecastPart, asked: list[float | None]) -> list[str]:
    """One cell per speed-up of the heading; documents come from anywhere and may lack some."""
    answers = {answer.speedup: answer for answer in forecast.speedups}
    return [_answered(answers.get(speedup)) for speedup in asked]


def _answered(answer: SpeedupForecastPart | None) -> str:
    if answer is None or answer.application_speedup is None:
        return UNKNOWN
    return faster_application(answer).replace(" to ", "-")


def _shift(dag: DagDocument, named: _Names) -> str:
    if not dominance_matters(dag):
        return ""
    dominant = dag.dominant_work.name if dag.dominant_work else None
    after = [step for step in dag.dominance if step.dominant_symbol not in (None, dominant)]
    if dag.dominance_shift_at is None or not after:
        return ""
    name = named.step(after[0])
    only = "" if dag.order_known else ", with the dependencies that are recorded"
    return f"\n(from {dag.dominance_shift_at:.4g}x on, {name} dominates the critical path{only})"
