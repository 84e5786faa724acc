"""The timeline as the page's script reads it: columns in base64, names shortened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_report.html.embedding import column, counts
from rpl_report.html.names import base_name, readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_core.interfaces.timeline import BinLevel, KeptNodes, PathLinks, Timeline
    from rpl_report.html.colours import Colours
    from rpl_report.html.names import KernelNames

__all__ = ["timeline_data"]


def timeline_data(
    timeline: Timeline, labels: Sequence[str], names: KernelNames, colours: Colours
) -> dict[str, Any]:
    """Times in ns, exact below 2^53 ns (104 days); ``id`` is the dispatch id plus 1, 0 for copies."""
    return {
        "span": timeline.span_ns,
        "complete": timeline.complete,
        "lanes": list(labels),
        "symbols": [
            {
                "name": names.short(symbol.name),
                "own": base_name(readable(symbol.name))
                if symbol.kind == "kernel"
                else readable(symbol.name, 64),
                "colour": colours.of(symbol.name, symbol.kind),
                "target": names.of(symbol.name) if symbol.kind == "kernel" else None,
            }
            for symbol in timeline.symbols
        ],
        "kept": _kept(timeline.kept),
        "levels": [_level(level) for level in timeline.levels],
        "links": _links(timeline.links),
    }


def _kept(kept: KeptNodes) -> dict[str, Any]:
    return {
        "lane": column(kept.lane, "u2"),
        "symbol": column(kept.symbol, "u2"),
        "begin": counts(kept.begin_ns),
        "duration": counts(kept.duration_ns),
        "slack": counts(kept.slack_ns),
        "path": column(kept.on_path, "u1"),
        "id": counts(kept.identity + 1),
    }


def _level(level: BinLevel) -> dict[str, Any]:
    return {
        "width": level.width_ns,
        "bins": level.bins,
        "busy": column(level.busy, "u1"),
        "path": column(level.on_path, "u1"),
        "symbol": column(level.symbol, "u2"),
        "count": column(level.count, "u4"),
    }


def _links(links: PathLinks) -> dict[str, Any]:
    return {
        "from": column(links.source_lane, "u2"),
        "to": column(links.target_lane, "u2"),
        "left": counts(links.source_end_ns),
        "right": counts(links.target_begin_ns),
    }
