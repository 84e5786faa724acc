"""The timeline as the page's script reads it: columns in base64, names shortened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core.renderers.html.embedding import column
from rpl_core.renderers.html.names import base_name, readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_core.renderers.html.colours import Colours
    from rpl_core.renderers.html.names import KernelNames
    from rpl_core.renderers.timeline.model import BinLevel, KeptNodes, PathLinks, Timeline

__all__ = ["timeline_data"]


def timeline_data(
    timeline: Timeline, labels: Sequence[str], names: KernelNames, colours: Colours
) -> dict[str, Any]:
    """Times as float64 ns (exact below 2^53 ns, 104 days)."""
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
        "begin": column(kept.begin_ns, "f8"),
        "duration": column(kept.duration_ns, "f8"),
        "slack": column(kept.slack_ns, "f8"),
        "path": column(kept.on_path, "u1"),
        "id": column(kept.identity, "f8"),
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
        "left": column(links.source_end_ns, "f8"),
        "right": column(links.target_begin_ns, "f8"),
    }
