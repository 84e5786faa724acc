"""The formats that rpl-report brings: four from the recording, two from dag.json."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rpl_core import __version__
from rpl_core.errors import BadDataError, MissingError
from rpl_core.text import encodable, printable
from rpl_report.export.rows import path_intervals, work_tracks
from rpl_report.interfaces import Exporter, ExportInput, ExportRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from rpl_report.timeline.lanes import TimedWork

    Int64Column = NDArray[np.int64]
    import networkx as nx

    from rpl_report.export.rows import ExportedRun

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


class PerfettoExporter(Exporter):
    name = "perfetto"
    summary = "streams, host threads, ranges, counters, idle time and the critical path, for ui.perfetto.dev"
    suffix = ".pftrace"
    binary = True

    def export(self, request: ExportRequest) -> bytes:
        run = _run(request)
        from rpl_report.export.perfetto import to_perfetto

        return to_perfetto(run.work, run.counters())


class CsvExporter(Exporter):
    name = "csv"
    summary = "one row per dispatch and copy with resources and counters, for spreadsheets"
    suffix = ".csv"

    def export(self, request: ExportRequest) -> bytes:
        run = _run(request)
        from rpl_report.export.rows import to_csv

        return to_csv(run.work, run.counters())


class ParquetExporter(Exporter):
    name = "parquet"
    summary = "the rows of csv with types, for data frames"
    suffix = ".parquet"
    binary = True

    def export(self, request: ExportRequest) -> bytes:
        run = _run(request)
        from rpl_report.export.rows import to_parquet

        return to_parquet(run.work, run.counters())


class SpeedscopeExporter(Exporter):
    name = "speedscope"
    summary = "a profile per stream and one of the critical path, for speedscope.app"
    suffix = ".speedscope.json"

    def export(self, request: ExportRequest) -> bytes:
        return to_speedscope(_run(request).work)


class GraphmlExporter(Exporter):
    name = "graphml"
    summary = "kernels and the dependencies between them, for graph tools"
    suffix = ".graphml"
    needs = ExportInput.DOCUMENTS

    def export(self, request: ExportRequest) -> bytes:
        graph = _graph(request)
        from rpl_analysis.execution_graph.results.kernel_graph import to_graphml

        return to_graphml(graph).encode("utf-8")


class DotExporter(Exporter):
    name = "dot"
    summary = "kernels and the dependencies between them, for Graphviz"
    suffix = ".dot"
    needs = ExportInput.DOCUMENTS

    def export(self, request: ExportRequest) -> bytes:
        graph = _graph(request)
        from rpl_analysis.execution_graph.results.kernel_graph import to_dot

        return to_dot(graph).encode("utf-8")


def _run(request: ExportRequest) -> ExportedRun:
    if request.recording is None:
        raise MissingError("this format is made from a recording, and there is none")
    try:
        from rpl_report.export.rows import exported_run
    except ModuleNotFoundError as error:
        raise _not_installed(error) from error
    return exported_run(request.recording, request.architecture)


def _graph(request: ExportRequest) -> nx.MultiDiGraph[str]:
    dag = request.documents.get("dag")
    try:
        from rpl_analysis.contracts.dag import DagDocument
        from rpl_analysis.execution_graph.results.kernel_graph import kernel_graph
    except ModuleNotFoundError as error:
        raise _not_installed(error) from error
    if not isinstance(dag, DagDocument):
        raise MissingError("there is no dag.json to export", next_step="analyse the run again")
    if dag.status != "available":
        raise BadDataError(f"there is no graph to export: {dag.reason}")
    return kernel_graph(dag)


def _not_installed(error: ModuleNotFoundError) -> MissingError:
    """The execution graph is computed by another distribution, which may have been removed."""
    return MissingError(f"this format needs {error.name}", next_step="pip install rpl-analysis")
