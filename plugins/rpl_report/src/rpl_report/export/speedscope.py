"""``speedscope``: an evented profile per stream, and one of the critical path.

Fields as in the schema that the viewer publishes (speedscope.app/file-format-schema.json).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rpl_core import __version__
from rpl_core.text.safety import encodable, printable
from rpl_report.export.tracks import path_intervals, work_tracks

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from rpl_report.timeline.work import TimedWork

    Int64Column = NDArray[np.int64]

__all__ = ["to_speedscope"]

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def to_speedscope(work: TimedWork) -> bytes:
    """JSON; times in ns after the first begin on the machine."""
    frames = [{"name": printable(encodable(name))} for name in work.nodes.symbol_names]
    head = json.dumps(
        {
            "$schema": _SCHEMA,
            "exporter": f"rpl {__version__}",
            "name": f"{work.trace.origin.value} recording",
            "activeProfileIndex": 0,
            "shared": {"frames": frames},
        },
        ensure_ascii=False,
    )
    profiles = ",\n".join(_profiles(work))
    return f'{head[:-1]}, "profiles": [\n{profiles}\n]}}\n'.encode()


def _profiles(work: TimedWork) -> Iterator[str]:
    shift = work.origin_ns[work.machine]
    begin, end = path_intervals(work)
    on_path = shift[work.path_rows]
    yield _profile(work, "critical path", work.path_rows, begin - on_path, end - on_path)
    several = len(work.trace.processes) > 1
    nodes = work.nodes
    for track in work_tracks(work):
        pid = work.trace.processes[track.process].pid
        name = f"pid {pid} · {track.label}" if several else track.label
        off = shift[track.rows]
        begin, end = nodes.begin_ns[track.rows] - off, nodes.end_ns[track.rows] - off
        yield _profile(work, name, track.rows, begin, end)


def _profile(
    work: TimedWork, name: str, rows: Int64Column, begin_ns: Int64Column, end_ns: Int64Column
) -> str:
    """Events as text: a dictionary for each of millions would take most of the time."""
    events = ",\n".join(
        f'{{"type":"O","frame":{frame},"at":{opened}}},{{"type":"C","frame":{frame},"at":{closed}}}'
        for frame, opened, closed in zip(
            work.nodes.symbol[rows].tolist(), begin_ns.tolist(), end_ns.tolist(), strict=True
        )
    )
    first, last = (int(begin_ns[0]), int(end_ns[-1])) if rows.size else (0, 0)
    head = json.dumps(
        {"type": "evented", "name": name, "unit": "nanoseconds", "startValue": first, "endValue": last},
        ensure_ascii=False,
    )
    return f'{head[:-1]}, "events": [\n{events}\n]}}'
