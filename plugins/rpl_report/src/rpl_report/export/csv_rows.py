"""``csv``: one row per dispatch and copy, in time order, with its slack and whether it is critical."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import numpy as np

from rpl_core.text.safety import readable
from rpl_report.timeline.lanes import identify_lane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_report.timeline.work import TimedWork

__all__ = ["CSV_COLUMNS", "cell_text", "to_csv"]

#: Times in ns as recorded; a cell is empty where the recording says nothing.
CSV_COLUMNS = (
    "machine",
    "process",
    "gpu",
    "stream",
    "queue",
    "kind",
    "dispatch_id",
    "correlation_id",
    "name",
    "begin_ns",
    "end_ns",
    "duration_ns",
    "slack_ns",
    "on_path",
)


def to_csv(work: TimedWork) -> bytes:
    """RFC 4180 with line feeds; see ``_cell`` for what becomes of names."""
    nodes, trace = work.nodes, work.trace
    copies = nodes.is_copy.tolist()
    columns = (
        _texts([cell_text(process.node) for process in trace.processes], nodes.process),
        _texts([str(process.pid) for process in trace.processes], nodes.process),
        *_lane_columns(work),
        ["copy" if is_copy else "kernel" for is_copy in copies],
        _numbers(_dispatch_ids(work)),
        _numbers(nodes.correlation_id),
        _texts([cell_text(name) for name in nodes.symbol_names], nodes.symbol),
        nodes.begin_ns.tolist(),
        nodes.end_ns.tolist(),
        nodes.duration_ns().tolist(),
        work.slack_ns.tolist(),
        work.on_path().astype(np.int8).tolist(),
    )
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue().encode("utf-8")


def cell_text(text: str) -> str:
    """Control characters as escapes, and a quote before what a spreadsheet would take for a formula."""
    safe = readable(text)
    return f"'{safe}" if safe.startswith(("=", "+", "-", "@")) else safe


def _texts(texts: Sequence[str], index: NDArray[np.integer]) -> list[str]:
    return [texts[i] for i in index.tolist()]


def _numbers(values: NDArray[np.integer]) -> list[int | str]:
    return ["" if value < 0 else value for value in values.tolist()]


def _lane_columns(work: TimedWork) -> tuple[list[str], list[str], list[str]]:
    """GPU, stream and queue of every node."""
    identities = [identify_lane(work, lane) for lane in range(len(work.nodes.lanes))]
    gpu = ["" if each.agent is None else str(each.agent) for each in identities]
    ids = ["" if each.id is None else str(each.id) for each in identities]
    stream = ["" if each.by_queue else text for each, text in zip(identities, ids, strict=True)]
    queue = [text if each.by_queue else "" for each, text in zip(identities, ids, strict=True)]
    lane = work.nodes.lane
    return _texts(gpu, lane), _texts(stream, lane), _texts(queue, lane)


def _dispatch_ids(work: TimedWork) -> NDArray[np.int64]:
    nodes = work.nodes
    ids = np.full(len(nodes), -1, dtype=np.int64)
    own = ~nodes.is_copy
    ids[own] = work.trace.dispatches.dispatch_id[nodes.row[own]]
    return ids
