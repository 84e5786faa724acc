"""The formats that rpl-report brings: four from the recording, two from dag.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, MissingError
from rpl_report.interfaces import Exporter, ExportInput, ExportRequest

if TYPE_CHECKING:
    import networkx as nx

    from rpl_report.export.source import ExportedRun

__all__ = [
    *("CsvExporter", "DotExporter", "GraphmlExporter", "ParquetExporter", "PerfettoExporter"),
    "SpeedscopeExporter",
]


class PerfettoExporter(Exporter):
    name = "perfetto"
    summary = "streams, host threads, ranges, counters, idle time and the critical path, for ui.perfetto.dev"
    suffix = ".pftrace"
    binary = True

    def export(self, request: ExportRequest) -> bytes:
        run = _run(request)
        from rpl_report.export.perfetto_trace import to_perfetto

        return to_perfetto(run.work, run.counters())


class CsvExporter(Exporter):
    name = "csv"
    summary = "one row per dispatch and copy with resources and counters, for spreadsheets"
    suffix = ".csv"

    def export(self, request: ExportRequest) -> bytes:
        run = _run(request)
        from rpl_report.export.csv_rows import to_csv

        return to_csv(run.work, run.counters())


class ParquetExporter(Exporter):
    name = "parquet"
    summary = "the rows of csv with types, for data frames"
    suffix = ".parquet"
    binary = True

    def export(self, request: ExportRequest) -> bytes:
        run = _run(request)
        from rpl_report.export.csv_rows import to_parquet

        return to_parquet(run.work, run.counters())


class SpeedscopeExporter(Exporter):
    name = "speedscope"
    summary = "a profile per stream and one of the critical path, for speedscope.app"
    suffix = ".speedscope.json"

    def export(self, request: ExportRequest) -> bytes:
        run = _run(request)
        from rpl_report.export.speedscope import to_speedscope

        return to_speedscope(run.work)


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
        from rpl_report.export.source import exported_run
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
