"""The formats of ``rpl export``: what each is for, and who writes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from rpl_analysis.contracts.dag import DagDocument
    from rpl_report.export.source import ExportedRun

__all__ = ["DAG_FORMATS", "WORK_FORMATS", "DagFormat", "WorkFormat"]


@attrs.frozen
class WorkFormat:
    """``binary`` output is not for a terminal."""

    write: Callable[[ExportedRun], bytes]
    binary: bool = False


@attrs.frozen
class DagFormat:
    write: Callable[[DagDocument], bytes]


def _csv(run: ExportedRun) -> bytes:
    from rpl_report.export.csv_rows import to_csv

    return to_csv(run.work)


def _speedscope(run: ExportedRun) -> bytes:
    from rpl_report.export.speedscope import to_speedscope

    return to_speedscope(run.work)


def _perfetto(run: ExportedRun) -> bytes:
    from rpl_report.export.perfetto_trace import to_perfetto

    return to_perfetto(run.work, run.counters())


def _graphml(dag: DagDocument) -> bytes:
    from rpl_analysis.execution_graph.kernel_graph import kernel_graph, to_graphml

    return to_graphml(kernel_graph(dag)).encode("utf-8")


def _dot(dag: DagDocument) -> bytes:
    from rpl_analysis.execution_graph.kernel_graph import kernel_graph, to_dot

    return to_dot(kernel_graph(dag)).encode("utf-8")


#: From the recording: every dispatch.
WORK_FORMATS = {
    "perfetto": WorkFormat(_perfetto, binary=True),
    "csv": WorkFormat(_csv),
    "speedscope": WorkFormat(_speedscope),
}
#: From dag.json: kernels and what is between them.
DAG_FORMATS = {"graphml": DagFormat(_graphml), "dot": DagFormat(_dot)}
