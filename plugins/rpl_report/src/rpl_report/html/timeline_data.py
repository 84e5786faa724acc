"""The timeline as the page's script reads it: columns in base64, names shortened."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rpl_core.text.safety import readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import DTypeLike, NDArray

    from rpl_report.html.kernel_identity import Colours, KernelNames
    from rpl_report.timeline.model import BinLevel, KeptNodes, PathLinks, Timeline, TimelineRanges

__all__ = ["script_json", "timeline_data"]

#: Inside a script element only these could begin a tag or a comment or, in old parsers, end a line.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def timeline_data(
    timeline: Timeline,
    labels: Sequence[str],
    range_labels: Sequence[str],
    names: KernelNames,
    colours: Colours,
) -> dict[str, Any]:
    """Times in ns, exact below 2^53 ns (104 days); ``id`` is the dispatch id plus 1, 0 for copies."""
    return {
        "span": timeline.span_ns,
        "complete": timeline.complete,
        "lanes": list(labels),
        "symbols": [
            {
                "name": names.work(symbol.name, symbol.kind),
                "own": names.work(symbol.name, symbol.kind),
                "colour": colours.of(symbol.name, symbol.kind),
                "target": names.of(symbol.name) if symbol.kind == "kernel" else None,
            }
            for symbol in timeline.symbols
        ],
        "kept": _kept(timeline.kept),
        "levels": [_level(level) for level in timeline.levels],
        "links": _links(timeline.links),
        "ranges": _ranges(timeline.ranges, range_labels),
    }


def _kept(kept: KeptNodes) -> dict[str, Any]:
    return {
        "lane": _column(kept.lane, "u2"),
        "symbol": _column(kept.symbol, "u2"),
        "begin": _counts(kept.begin_ns),
        "duration": _counts(kept.duration_ns),
        "slack": _counts(kept.slack_ns),
        "path": _column(kept.on_path, "u1"),
        "id": _counts(kept.identity + 1),
    }


def _level(level: BinLevel) -> dict[str, Any]:
    return {
        "width": level.width_ns,
        "bins": level.bins,
        "busy": _column(level.busy, "u1"),
        "path": _column(level.on_path, "u1"),
        "symbol": _column(level.symbol, "u2"),
        "count": _column(level.count, "u4"),
    }


def _links(links: PathLinks) -> dict[str, Any]:
    return {
        "from": _column(links.source_lane, "u2"),
        "to": _column(links.target_lane, "u2"),
        "left": _counts(links.source_end_ns),
        "right": _counts(links.target_begin_ns),
    }


def _ranges(ranges: TimelineRanges, labels: Sequence[str]) -> dict[str, Any]:
    return {
        "rows": list(labels),
        "names": [readable(name, 120) for name in ranges.names],
        "row": _column(ranges.lane, "u2"),
        "name": _column(ranges.name, "u2"),
        "begin": _column(ranges.begin_ns, "f8"),
        "duration": _counts(ranges.duration_ns),
    }


def script_json(value: Any) -> Markup:
    """``value`` as JSON for a ``<script type="application/json">`` element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return Markup(text)  # noqa: S704 - every character that HTML knows is escaped above


def _column(values: NDArray[np.generic], kind: DTypeLike) -> str:
    """``values`` as little-endian ``kind`` in base64; what typed arrays of the script read."""
    import numpy as np

    wanted = np.dtype(kind).newbyteorder("<")
    return base64.b64encode(np.ascontiguousarray(values.astype(wanted)).tobytes()).decode("ascii")


def _counts(values: NDArray[np.int64]) -> dict[str, str]:
    """Whole numbers from 0 on: 4 bytes each where they all fit, else float64, exact below 2^53."""
    kind = "u4" if not values.size or int(values.max()) < 1 << 32 else "f8"
    return {"kind": kind, "data": _column(values, kind)}
