"""A finished search as text, and as the section of reports with its drawings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from markupsafe import Markup, escape

from rpl_analysis.text import UNKNOWN
from rpl_core.interfaces.section import Block, Paragraph, ReportSection, SectionRequest, Table
from rpl_core.text import counted, format_table, printable, shorten, wrap_lines

if TYPE_CHECKING:
    from rpl_autotune.contracts import AutotuneDocument, ComparisonPart, EvaluationPart
    from rpl_autotune.interfaces import Value


class AutotuneSection(ReportSection):
    """Present where the documents of a report hold `autotune`: in the report that a search writes."""

    name = "autotune"
    summary = "how a search of parameters converged, and what its model says"
    title = "Autotuning"

    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        document = _document(request)
        if document is None:
            return ()

        best = document.best_config
        shown = (
            "none" if best is None else f"{configuration_text(best.parameters)}, {time_text(best.runtime_ms)}"
        )
        rows = tuple(
            (str(item.number), item.phase, time_text(item.runtime_ms), configuration_text(item.parameters))
            for item in document.evaluations
        )
        return (
            Paragraph(f"Best configuration: {shown}."),
            *(Paragraph(line) for line in model_text(document)),
            Table(("no.", "phase", "time", "configuration"), rows, right=("no.", "time")),
        )

    def html(self, request: SectionRequest) -> str | None:
        document = _document(request)
        if document is None:
            return None

        return section_html(document, self.title)


def _document(request: SectionRequest) -> AutotuneDocument | None:
    document: AutotuneDocument | None = cast("Any", request.documents).get("autotune")
    return document


# A finished search as text.


_SHOWN = 10
_SOURCES = {
    "profile": "sum over all dispatches",
    "wall": "wall clock of the whole process",
    "printed": "printed by the program",
}
_MARK = {"synthetic": " (synthetic)", "modelled": " (modelled)"}


def document_text(document: AutotuneDocument, width: int | None = None) -> str:
    """The result for people: winner, how sure, table of the fastest, and what went wrong."""
    text = "\n".join(printable(line) for line in _lines(document, width)) + "\n"
    return text if width is None else wrap_lines(text, width)


def configuration_text(parameters: Mapping[str, Value]) -> str:
    """``A=1 B=2``."""
    return " ".join(f"{name}={value}" for name, value in parameters.items())


def time_text(time_ms: float | None) -> str:
    return UNKNOWN if time_ms is None else f"{time_ms:.6g} ms"


def predicted_text(item: EvaluationPart) -> str:
    """The prediction with the interval that 19 of 20 measurements are expected in."""
    if item.predicted_interval_ms is None:
        return time_text(item.predicted_ms)
    low, high = item.predicted_interval_ms
    return f"{time_text(item.predicted_ms)} ({low:.4g} to {high:.4g})"


def _lines(document: AutotuneDocument, width: int | None) -> Iterator[str]:
    failed = f", {document.failed_configs} of them failed" if document.failed_configs else ""
    cached = f", {document.cached_configs} from the cache" if document.cached_configs else ""
    size, measured = document.search_space_size, document.evaluated_configs
    how = f"strategy {document.strategy}, seed {document.seed}; ended by: {document.termination_reason}"
    yield f"{measured} of {size} configurations measured{failed}{cached} ({how})"
    yield f"time: {_SOURCES[document.time_source]}{_MARK.get(document.origin or '', '')}"
    yield ""
    yield from _best(document)
    yield ""
    yield from model_text(document)
    if document.warning is not None:
        yield f"warning: {document.warning}; what helps:"
        yield from (f"  - {remedy}" for remedy in document.remedies)
    yield from _devices(document)
    yield ""
    yield from _table(document, width)


def _best(document: AutotuneDocument) -> Iterator[str]:
    best = document.best_config
    if best is None:
        yield "no configuration has a time"
        return
    fresh = "measured afresh" if best.fresh else f"as found by the search: {document.final_missing}"
    yield f"best: {configuration_text(best.parameters)}"
    yield f"      {time_text(best.runtime_ms)}, {fresh} (in the search {time_text(best.search_ms)})"
    final = document.final
    if final is None:
        return
    if final.swapped:
        yield "      the search's own winner was slower than its runner-up in the final measurement"
    for role, comparison in (("runner-up", final.best_over_runner_up), ("default", final.best_over_default)):
        if comparison is not None:
            yield f"      against the {role}: {comparison_text(comparison)}"


def comparison_text(comparison: ComparisonPart) -> str:
    """The ratio with its interval, and whether it proves anything."""
    ratio = f"{comparison.ratio:.4g} times as fast"
    if comparison.interval is None:
        return f"{ratio} ({counted(comparison.pairs, 'pair is', 'pairs are')} too few for an interval)"
    low, high = comparison.interval
    verdict = "" if comparison.proven else ": no proven difference"
    return f"{ratio} (95 % interval {low:.4g} to {high:.4g}, {counted(comparison.pairs, 'pair')}){verdict}"


def model_text(document: AutotuneDocument) -> Iterator[str]:
    """What cross-validation says of the model, and which parameters matter by it."""
    model = document.model
    if model.r2 is None:
        yield f"model: {model.reason}"
        return
    low = "" if model.r2_low is None else f" (above {model.r2_low:.2f} at 19 of 20)"
    yield (
        f"model: trust {model.trust}, held-out R² {model.r2:.3f}{low}, "
        f"residual {model.residual_std or 0.0:.3f} of ln(time), "
        f"{counted(model.samples, 'random measurement')}"
    )
    if model.parameters:
        shown = sorted(model.parameters.items(), key=lambda item: -item[1])[:_SHOWN]
        yield "importance: " + ", ".join(f"{name} {part:.0%}" for name, part in shown)
    pairs = [pair for pair in model.pairs if pair[2] >= 0.01]
    if pairs:
        yield "together: " + ", ".join(f"{a} with {b} {part:.0%}" for a, b, part in pairs[:3])


def _devices(document: AutotuneDocument) -> Iterator[str]:
    if len(document.devices) < 2:
        return
    rows = [
        (
            device.name,
            str(device.evaluations),
            time_text(device.reference_ms),
            UNKNOWN if device.correction is None else f"{device.correction:.4f}",
        )
        for device in document.devices
    ]
    yield ""
    columns = ("device", "evaluations", "reference", "times multiplied by")
    yield format_table(columns, rows, right=columns[1:])


def _table(document: AutotuneDocument, width: int | None) -> Iterator[str]:
    good = [item for item in document.evaluations if item.runtime_ms is not None]
    good.sort(key=lambda item: (item.runtime_ms or 0.0, item.number))
    rows = [
        (
            str(item.number),
            time_text(item.runtime_ms),
            predicted_text(item),
            item.phase,
            shorten(configuration_text(item.parameters), 80),
        )
        for item in good[:_SHOWN]
    ]
    if rows:
        columns = ("no.", "time", "predicted", "phase", "configuration")
        yield format_table(columns, rows, right=("no.", "time", "predicted"), width=width)
    failed = [item for item in document.evaluations if item.state != "ok"]
    for item in failed[:3]:
        yield shorten(f"{item.state}: {configuration_text(item.parameters)}: {item.reason}", 160)
    if len(failed) > 3:
        yield f"and {len(failed) - 3} more that failed; all are in autotune.json"


# The section of the HTML report with its drawings, and the report that a search writes.


_WIDTH, _HEIGHT = 640.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 620.0, 14.0, 258.0
_FAINT = Markup('fill="currentColor" fill-opacity="0.35"')
_STRONG = Markup('fill="#c2410c"')


def section_html(document: AutotuneDocument, title: str) -> str:
    """The whole section: the text with its table, and a drawing for what each can show."""
    drawings = (
        convergence(document),
        predicted_against_measured(document),
        importance(document),
        pair_grid(document),
    )
    return str(
        Markup('<section id="autotune"><h2>{}</h2><pre>{}</pre>{}</section>').format(
            title,
            document_text(document),
            Markup("").join(drawing for drawing in drawings if drawing is not None),
        )
    )


class _Axis:
    """Positions of values between two ends; logarithmic where times span more than a factor of four."""

    def __init__(self, values: Sequence[float], begin: float, end: float, *, times: bool = True) -> None:
        low, high = min(values), max(values)
        self.logarithmic = times and low > 0 and high / low > 4
        self._low, self._high = (math.log(low), math.log(high)) if self.logarithmic else (low, high)
        if self._high <= self._low:
            self._low, self._high = self._low - 0.5, self._high + 0.5
        self._begin, self._end = begin, end

    def place(self, value: float) -> float:
        number = math.log(value) if self.logarithmic else value
        return self._begin + (number - self._low) / (self._high - self._low) * (self._end - self._begin)

    def ticks(self) -> list[tuple[float, float]]:
        """Position and value of five ticks."""
        numbers = [self._low + (self._high - self._low) * n / 4 for n in range(5)]
        values = [math.exp(n) if self.logarithmic else n for n in numbers]
        return [(self.place(value), value) for value in values]


def convergence(document: AutotuneDocument) -> Markup | None:
    """Every time in order, and the best so far."""
    good = [item for item in document.evaluations if item.runtime_ms is not None]
    if not good:
        return None
    times = [item.runtime_ms or 0.0 for item in good]
    x = _Axis([0.0, float(len(document.evaluations))], _LEFT, _RIGHT, times=False)
    y = _Axis(times, _BOTTOM, _TOP)
    dots = [_dot(x.place(item.number), y.place(item.runtime_ms or 0.0), item) for item in good]
    best, steps = math.inf, []
    for item in good:
        best = min(best, item.runtime_ms or math.inf)
        steps.append((x.place(item.number), y.place(best)))
    line = _polyline(steps)
    return _figure([*_axes(x, y, "evaluation", "ms"), *dots, line], "Time of each evaluation, best so far")


def predicted_against_measured(document: AutotuneDocument) -> Markup | None:
    """Predictions that were said before the measurement, beside what was measured."""
    both = [e for e in document.evaluations if e.runtime_ms is not None and e.predicted_ms is not None]
    if not both:
        return None
    values = [value for e in both for value in (e.runtime_ms or 0.0, e.predicted_ms or 0.0)]
    x, y = _Axis(values, _LEFT, _RIGHT), _Axis(values, _BOTTOM, _TOP)
    low, high = min(values), max(values)
    diagonal = _polyline([(x.place(low), y.place(low)), (x.place(high), y.place(high))])
    dots = [_dot(x.place(e.predicted_ms or 0.0), y.place(e.runtime_ms or 0.0), e) for e in both]
    return _figure(
        [*_axes(x, y, "predicted, ms", "measured, ms"), diagonal, *dots], "Predicted against measured"
    )


def importance(document: AutotuneDocument) -> Markup | None:
    """Parts of the variance that single parameters and pairs explain, by the model."""
    single = [(name, part) for name, part in document.model.parameters.items()]
    pairs = [(f"{a} with {b}", part) for a, b, part in document.model.pairs if part >= 0.01]
    bars = sorted([*single, *pairs], key=lambda bar: -bar[1])[:12]
    if not bars:
        return None
    largest = max(part for _, part in bars) or 1.0
    parts = []
    for row, (name, part) in enumerate(bars):
        top = 10.0 + row * 24
        parts.append(_svg_text(230, top + 13, name, anchor="end"))
        parts.append(
            Markup('<rect x="240" y="{}" width="{:.1f}" height="16" {}/>').format(
                top, 320 * part / largest, _STRONG
            )
        )
        parts.append(_svg_text(248 + 320 * part / largest, top + 13, f"{part:.0%}"))
    return _figure(parts, "Importance of parameters by the model", height=20.0 + 24 * len(bars))


def pair_grid(document: AutotuneDocument) -> Markup | None:
    """Best measured time for each combination of the two parameters that act together most."""
    if not document.model.pairs:
        return None
    first, second, _ = document.model.pairs[0]
    best: dict[tuple[str, str], float] = {}
    for item in document.evaluations:
        if item.runtime_ms is not None:
            key = str(item.parameters[first]), str(item.parameters[second])
            best[key] = min(best.get(key, math.inf), item.runtime_ms)
    columns, rows = _labels(document, first), _labels(document, second)
    if not best or len(columns) > 24 or len(rows) > 24:
        return None
    shade = _Axis(list(best.values()), 0.95, 0.08)
    width, height = 520.0 / len(columns), 22.0
    parts = [
        _svg_text(80 + n * width + width / 2, 12, label, anchor="middle") for n, label in enumerate(columns)
    ]
    for row, below in enumerate(rows):
        parts.append(_svg_text(72, 34 + row * height, below, anchor="end"))
        for column, beside in enumerate(columns):
            value = best.get((beside, below))
            if value is not None:
                parts.append(_cell(80 + column * width, 18 + row * height, width, shade.place(value), value))
    title = f"Best measured time by {first} (across) and {second} (down); dark is fast"
    return _figure(parts, title, height=30 + height * len(rows))


def _labels(document: AutotuneDocument, name: str) -> list[str]:
    values = dict.fromkeys(item.parameters[name] for item in document.evaluations)
    if all(isinstance(value, (int, float)) for value in values):
        return [str(value) for value in sorted(values, key=float)]
    return [str(value) for value in values]


def _cell(left: float, top: float, width: float, opacity: float, value: float) -> Markup:
    return Markup(
        '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="20" fill="#c2410c" fill-opacity="{:.2f}">'
        "<title>{:.6g} ms</title></rect>"
    ).format(left, top, width - 2, opacity, value)


def _dot(x: float, y: float, item: EvaluationPart) -> Markup:
    title = f"{item.number}: {configuration_text(item.parameters)}: {item.runtime_ms:.6g} ms ({item.phase})"
    fill = _STRONG if item.phase == "confirm" else _FAINT
    return Markup('<circle cx="{:.1f}" cy="{:.1f}" r="3.5" {}><title>{}</title></circle>').format(
        x, y, fill, title
    )


def _polyline(points: Iterable[tuple[float, float]]) -> Markup:
    shown = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<polyline points="{}" fill="none" stroke="currentColor" stroke-width="1.5"/>').format(
        shown
    )


def _axes(x: _Axis, y: _Axis, below: str, beside: str) -> list[Markup]:
    parts = [
        Markup('<path d="M{0} {1}V{2}H{3}" fill="none" stroke="currentColor" stroke-opacity="0.5"/>').format(
            _LEFT, _TOP, _BOTTOM, _RIGHT
        )
    ]
    parts += [_svg_text(place, _BOTTOM + 16, f"{value:.3g}", anchor="middle") for place, value in x.ticks()]
    parts += [_svg_text(_LEFT - 6, place + 4, f"{value:.3g}", anchor="end") for place, value in y.ticks()]
    parts.append(_svg_text((_LEFT + _RIGHT) / 2, _BOTTOM + 34, below, anchor="middle"))
    parts.append(_svg_text(_LEFT + 6, _TOP + 6, beside))
    return parts


def _svg_text(x: float, y: float, text: str, *, anchor: str = "start") -> Markup:
    return Markup(
        '<text x="{:.1f}" y="{:.1f}" font-size="11" fill="currentColor" text-anchor="{}">{}</text>'
    ).format(x, y, anchor, text)


def _figure(parts: Iterable[Markup], title: str, *, height: float = _HEIGHT) -> Markup:
    body = Markup("").join(parts)
    return Markup(
        '<figure><svg viewBox="0 0 {} {:.0f}" width="{}" role="img" aria-label="{}">{}</svg>'
        "<figcaption>{}</figcaption></figure>"
    ).format(_WIDTH, height, _WIDTH, title, body, escape(title))
