"""Speed of light as a picture per kernel: compute units, LDS, caches and memory, each beside its ceiling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.text import readable
from rpl_core.values import frozen
from rpl_report.html import figures as q
from rpl_report.html.figures import by_time
from rpl_report.html.roofs import pipe_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_analysis.contracts.profile import KernelProfile, ProfileDocument
    from rpl_analysis.contracts.roofline import (
        CeilingsPart,
        KernelRooflineDoc,
        LevelPart,
        RooflineDocument,
        TypeWorkPart,
    )
    from rpl_core.model.metric import Metric
    from rpl_report.html.figures import Colours, KernelNames

__all__ = ["LightBox", "LightPicture", "LightView", "light_view"]

#: Kernels with a picture, and those whose picture is not folded (chosen: 4 KB each).
_SHOWN, _OPEN = 20, 2
#: Level, title, cache whose hit rate stands in the box.
_LEVELS = (
    ("lds", "LDS", None),
    ("vl1d", "vL1D", "vl1d_hit_rate"),
    ("l2", "L2", "l2_hit_rate"),
    ("hbm", "Fabric / HBM", None),
)
_MARKS = {"lower_bound": "≥ ", "estimate": "≈ "}
_WORDS = {"exact": "exact", "lower_bound": "lower bound", "estimate": "estimate"}
_SHEETS = {"spec": "data sheet", "measured": "measured", "published": "published"}


@frozen
class LightBox:
    """One unit. ``share`` is its rate over its ceiling as text, ``width`` the same in percent for the bar.

    ``lines`` are (what, figure, its exactness); ``reason`` says why a figure is missing.
    """

    level: str
    title: str
    share: str
    width: float | None
    above: bool
    lines: tuple[tuple[str, str, str], ...]
    reason: str | None
    how: str


@frozen
class LightPicture:
    """A kernel: its compute units by data type, and the levels by name with the bytes that reach them."""

    id: str | None
    name: str
    css: str
    label: str
    is_open: bool
    units: tuple[LightBox, ...]
    levels: tuple[LightBox, ...]
    flows: dict[str, str]


@frozen
class LightView:
    """``reason`` is set where no counters were recorded."""

    reason: str | None
    pictures: tuple[LightPicture, ...] = ()
    left_out: int = 0


def light_view(
    profile: ProfileDocument, roofline: RooflineDocument, names: KernelNames, colours: Colours
) -> LightView:
    """Pictures of the kernels with most time that have counters."""
    if roofline.status != "available":
        how = f" Next: {roofline.how_to_collect}" if roofline.how_to_collect else ""
        return LightView(readable(f"{roofline.reason or roofline.status}.{how}", 500))
    placed = {entry.name: entry for entry in roofline.kernels}
    timed = [kernel for kernel in by_time(profile) if kernel.name in placed]
    pictures = tuple(
        _picture(rank, kernel, placed[kernel.name], roofline.ceilings, names, colours)
        for rank, kernel in enumerate(timed[:_SHOWN])
    )
    return LightView(None, pictures, len(timed) - len(pictures))


def _picture(
    rank: int,
    kernel: KernelProfile,
    work: KernelRooflineDoc,
    ceilings: CeilingsPart,
    names: KernelNames,
    colours: Colours,
) -> LightPicture:
    boxes = tuple(_levels(work))
    return LightPicture(
        id=names.of(kernel.name),
        name=names.short(kernel.name),
        css=f"c{colours.of(kernel.name)}",
        label=f"{q.share(kernel.time_share)} of kernel time",
        is_open=rank < _OPEN,
        units=tuple(_units(work, kernel, ceilings)),
        levels=boxes,
        flows={level.level: _amount(level.bytes, "B") for level in work.levels},
    )


def _units(work: KernelRooflineDoc, kernel: KernelProfile, ceilings: CeilingsPart) -> Iterator[LightBox]:
    """By data type; without any arithmetic one box that says so, or why that is unknown."""
    peaks = {(c.data_type, c.pipe): (c.peak_gflops, c.origin) for c in ceilings.compute if c.origin == "spec"}
    for each in work.types:
        yield _unit(each, peaks.get((each.data_type, each.pipe)))
    if not work.types:
        flops = work.flops
        known = flops.value is not None
        text = "no floating-point operations" if known else "unknown"
        lines = (("operations", text, _exactness(flops)),)
        yield LightBox("unit", "Arithmetic", "", None, False, lines, _reason(flops), _how(flops))
    occupancy = kernel.occupancy
    if occupancy.theoretical is not None:
        waves = f"{occupancy.waves_per_simd} of {occupancy.max_waves_per_simd} waves per SIMD"
        lines = (("at most", waves, "upper bound"),)
        share = q.share(occupancy.theoretical, 0)
        yield LightBox("unit", "Occupancy", share, 100 * occupancy.theoretical, False, lines, None, "")


def _unit(each: TypeWorkPart, peak: tuple[float, str] | None) -> LightBox:
    share, width = _share(each.gops, peak[0] if peak else None)
    lines = [
        ("rate", _rate(each.gops, "OP/s"), _exactness(each.gops)),
        ("ceiling", _ceiling(peak, "OP/s"), _SHEETS.get(peak[1], "") if peak else ""),
        ("per launch", _amount(each.operations, "OP"), _exactness(each.operations)),
    ]
    title = f"{each.data_type} {pipe_name(each.pipe)}"
    missing = _reason(each.gops)
    return LightBox("unit", title, share, width, _above(width), tuple(lines), missing, _how(each.operations))


def _levels(work: KernelRooflineDoc) -> Iterator[LightBox]:
    traffic = {level.level: level for level in work.levels}
    for name, title, cache in _LEVELS:
        if name in traffic:
            yield _level(name, title, traffic[name], work.caches.get(cache or ""))
        else:
            reason = "the device's counters do not tell"
            yield LightBox(name, title, "unknown", None, False, (), reason, "")


def _level(name: str, title: str, level: LevelPart, hits: Metric | None) -> LightBox:
    # The data sheet's ceiling, or where it has none the best other one.
    origins = {"spec": level.spec_gbps, "measured": level.measured_gbps, "published": level.published_gbps}
    peak = next(((peak, origin) for origin, peak in origins.items() if peak), None)
    rate = level.achieved_gbps
    share, width = _share(rate, peak[0] if peak else None)
    lines = [
        ("rate", _rate(rate, "B/s"), _exactness(rate)),
        ("ceiling", _ceiling(peak, "B/s"), _SHEETS[peak[1]] if peak else ""),
    ]
    if hits is not None:
        lines.append(("hit rate", _marked(hits, q.share(hits.value)), _exactness(hits)))
    lines.append(("per launch", _amount(level.bytes, "B"), _exactness(level.bytes)))
    if level.bytes.value == 0:
        share, width, lines = "not used", None, lines[-1:]
    missing = _reason(level.bytes) or _reason(rate) or (_reason(hits) if hits is not None else None)
    return LightBox(name, title, share, width, _above(width), tuple(lines), missing, _how(level.bytes))


def _share(rate: Metric, peak: float | None) -> tuple[str, float | None]:
    if rate.value is None or not peak:
        return "unknown", None
    share = rate.value / peak
    upper = "" if rate.upper is None else f" to {q.share(rate.upper / peak)}"
    return f"{_MARKS.get(rate.exactness or '', '')}{q.share(share)}{upper}", 100 * share


def _above(width: float | None) -> bool:
    return width is not None and width > 100


def _rate(metric: Metric, unit: str) -> str:
    upper = "" if metric.upper is None else f" to {q.flops(metric.upper).replace('FLOP/s', unit)}"
    return _marked(metric, q.flops(metric.value).replace("FLOP/s", unit) + upper)


def _amount(metric: Metric, unit: str) -> str:
    """Per launch, with the prefix that leaves few digits."""
    value = None if metric.value is None else metric.value / 1e9
    upper = "" if metric.upper is None else f" to {q.bytes_per_s(metric.upper / 1e9).replace('B/s', unit)}"
    return _marked(metric, q.bytes_per_s(value).replace("B/s", unit) + upper)


def _marked(metric: Metric, text: str) -> str:
    return "unknown" if metric.value is None else f"{_MARKS.get(metric.exactness or '', '')}{text}"


def _ceiling(peak: tuple[float, str] | None, unit: str) -> str:
    return "unknown" if peak is None else q.flops(peak[0]).replace("FLOP/s", unit)


def _exactness(metric: Metric) -> str:
    return _WORDS.get(metric.exactness or "", "")


def _reason(metric: Metric) -> str | None:
    return readable(metric.reason or "no reason given", 160) if metric.value is None else None


def _how(metric: Metric) -> str:
    """Formula and note, for who points at the box."""
    return readable(". ".join(text for text in (metric.formula, metric.note) if text), 400)
