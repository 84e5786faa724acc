"""A finished search as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rpl_analysis.text.figures import UNKNOWN
from rpl_core.text.safety import printable, shorten
from rpl_core.text.table import counted, format_table, wrap_lines

if TYPE_CHECKING:
    from rpl_autotune.contracts.autotune import AutotuneDocument, ComparisonPart, EvaluationPart
    from rpl_autotune.interfaces.space import Value

__all__ = ["comparison_text", "configuration_text", "document_text", "model_text", "time_text"]

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
    yield from _summary(document)
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


def _summary(document: AutotuneDocument) -> Iterator[str]:
    failed = f", {document.failed_configs} of them failed" if document.failed_configs else ""
    cached = f", {document.cached_configs} from the cache" if document.cached_configs else ""
    size, measured = document.search_space_size, document.evaluated_configs
    how = f"strategy {document.strategy}, seed {document.seed}; ended by: {document.termination_reason}"
    yield f"{measured} of {size} configurations measured{failed}{cached} ({how})"
    yield f"time: {_SOURCES[document.time_source]}{_MARK.get(document.origin or '', '')}"


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
