"""The text report: the verdict, one line per kernel, the critical path, then what plugins add."""

from __future__ import annotations

import re
import shlex
import textwrap
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from rpl_analysis.options import NAMES
from rpl_analysis.text.figures import UNKNOWN, between, duration_ns, marked, one_unit, percent, work_name
from rpl_analysis.text.names import fit_table, shorten_apart
from rpl_core.cli.output import USUAL_WIDTH
from rpl_core.interfaces.renderer import Renderer, RenderRequest
from rpl_core.interfaces.section import Paragraph, SectionRequest
from rpl_core.text.safety import printable, readable
from rpl_core.text.table import wrap_lines
from rpl_report.documents import device_names, report_documents
from rpl_report.sections import claims_of, text_sections
from rpl_report.text.kernels import NAME_WIDTH, kernel_table
from rpl_report.text.path import path_section
from rpl_report.verdict import verdict_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rpl_analysis.contracts.analysis import AnalysisDocument
    from rpl_analysis.contracts.profile import AddedTime, CallOverhead, ProfileDocument
    from rpl_analysis.contracts.roofline import RooflineDocument
    from rpl_core.interfaces.section import Block, Table
    from rpl_core.model.metric import Metric
    from rpl_report.documents import ReportDocuments
    from rpl_report.sections import AnsweredSection
    from rpl_report.verdict import Entry, Naming, Verdict


def section_text(section: AnsweredSection, width: int) -> str:
    """One section: as the plugin draws it, or its title above its blocks."""
    if section.problem is not None:
        return wrap_lines(readable(f"{section.title}: not shown: {section.problem}"), width)
    if section.own is not None:
        return wrap_lines(printable(section.own), width)
    return "\n".join((readable(section.title), *(_block(block, width) for block in section.blocks)))


def _block(block: Block, width: int) -> str:
    return wrap_lines(printable(block.text), width) if isinstance(block, Paragraph) else _table(block, width)


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
    kept = (number, "step") not in gone or not entry.step  # a command alone is all that there is to do
    command = f"Run: {entry.command}" if entry.command and kept else ""
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


_LONGEST_NAME = 48


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
        sections = [
            verdict_text(verdict, request.width),
            *((path, head, kernels) if request.path_first else (head, kernels, path)),
            *(section_text(each, request.width) for each in text_sections(request.sections, asked)),
            corrections_section(documents.roofline, documents.analysis, names, request.width),
            _roofline_note(documents.roofline),
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


def _roofline_note(roofline: RooflineDocument) -> str:
    if roofline.status == "available":
        return ""
    return f"roofline: {roofline.status.replace('_', ' ')}. {printable(roofline.reason or '')}"


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
    droppable = ("counted",)
    return fit_table(
        columns, rows, width, right=columns[1:3], droppable=droppable, longest_name=_LONGEST_NAME
    )[0]


def _figure(metric: Metric | None) -> str:
    return UNKNOWN if metric is None else marked(metric.value, metric.exactness, metric.upper)
