"""Reports for programs (JSON, CSV, SARIF), and the formats of ``rpl export``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rpl_analysis.options import NAMES
from rpl_core import __version__
from rpl_core.errors import BadDataError, MissingError
from rpl_core.interfaces.section import Renderer, RenderRequest, SectionRequest
from rpl_core.text import encodable, harmless_json, printable, readable
from rpl_report.documents import claims_of, report_documents
from rpl_report.interfaces import Exporter, ExportInput, ExportRequest
from rpl_report.options import ALL, TOP, chosen_kernels
from rpl_report.rows import path_intervals, work_tracks

if TYPE_CHECKING:
    from collections.abc import Iterator

    import networkx as nx
    import numpy as np
    from numpy.typing import NDArray

    from rpl_analysis.contracts.profile import KernelProfile
    from rpl_core.interfaces.section import Place
    from rpl_report.rows import ExportedRun
    from rpl_report.timeline.lanes import TimedWork

    Int64Column = NDArray[np.int64]

_CSV_COLUMNS: Mapping[str, Callable[[KernelProfile], float | str | None]] = {
    "calls_per_run": lambda k: k.launches,
    "time_ms": lambda k: k.runtime_ms,
    "time_share": lambda k: k.time_share,
    "median_ns": lambda k: k.median_ns,
    "occupancy": lambda k: k.occupancy.theoretical,
    "limiter": lambda k: k.occupancy.limiter,
    "vgpr_per_thread": lambda k: k.resources.vgpr_per_thread,
    "sgpr_per_wave": lambda k: k.resources.sgpr_per_wave,
    "lds_bytes": lambda k: k.resources.lds_bytes,
    "criticality": lambda k: k.criticality_weight,
    "achieved_gbps": lambda k: k.roofline.achieved_gbps if k.roofline else None,
    "flop_per_byte": lambda k: k.roofline.operational_intensity if k.roofline else None,
    "exactness": lambda k: k.roofline.exactness if k.roofline else None,
}


class CsvRenderer(Renderer):
    """One unit per column; an unknown figure is an empty cell."""

    name = "csv"
    summary = "the table of kernels for spreadsheets and scripts"
    suffix = ".csv"

    def render(self, request: RenderRequest) -> str:
        from rpl_report.rows import cell_text

        documents = report_documents(request.documents)
        names = documents.shown_names(request.options[NAMES])
        labels = {entry.kernel: entry for entry in documents.analysis.kernels}
        chosen = chosen_kernels(documents.profile.kernels, names, request.options)
        if request.options[TOP] != TOP.default and not request.options[ALL]:
            chosen = chosen[: request.options[TOP]]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("kernel", *_CSV_COLUMNS, "bottleneck", "confidence", "full_name"))
        for kernel in chosen:
            label = labels.get(kernel.name)
            writer.writerow(
                (
                    cell_text(names.get(kernel.name, kernel.name)),
                    *("" if (value := read(kernel)) is None else value for read in _CSV_COLUMNS.values()),
                    label.bottleneck if label else "",
                    label.confidence if label else "",
                    cell_text(kernel.name),
                )
            )
        return text.getvalue()


class JsonRenderer(Renderer):
    name = "json"
    summary = "all documents in one JSON object"
    suffix = ".json"

    def render(self, request: RenderRequest) -> str:
        documents = {name: document.model_dump(mode="json") for name, document in request.documents.items()}
        return harmless_json(json.dumps(documents, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_RULE = "rpl/hot-line"
_LONGEST = 400


class SarifRenderer(Renderer):
    name = "sarif"
    summary = "findings with a line of source, for code scanning and editors"
    suffix = ".sarif"

    def render(self, request: RenderRequest) -> str:
        documents = report_documents(request.documents)
        names = documents.shown_names(request.options[NAMES])
        asked = SectionRequest(MappingProxyType(request.documents), short_names=names)
        places = [place for claim in claims_of(request.sections, asked) for place in claim.places]
        provenance = documents.profile.provenance
        rule = {
            "id": _RULE,
            "shortDescription": {"text": "A line of source with much of a kernel's time."},
            "defaultConfiguration": {"level": "note"},
        }
        driver = {"name": "rpl", "semanticVersion": __version__, "rules": [rule]}
        run = {
            "tool": {"driver": driver},
            "columnKind": "unicodeCodePoints",
            "properties": {"origin": provenance.origin if provenance else "unknown"},
            "results": [_result(place) for place in places],
        }
        document = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
        return harmless_json(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


def _result(place: Place) -> dict[str, Any]:
    """Paths become references to a URI: nothing in them is a scheme, a query or a fragment."""
    path = place.file.encode("utf-8", "backslashreplace").decode()
    uri = f"file://{quote(path)}" if path.startswith("/") else quote(path)
    location = {"artifactLocation": {"uri": uri}, "region": {"startLine": place.line}}
    return {
        "ruleId": _RULE,
        "ruleIndex": 0,
        "level": "note",
        "message": {"text": readable(place.text, _LONGEST)},
        "locations": [{"physicalLocation": location}],
    }


# The formats that rpl-report brings: four from the recording, two from dag.json.

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
        from rpl_report.perfetto import to_perfetto

        return to_perfetto(run.work, run.counters())


class CsvExporter(Exporter):
    name = "csv"
    summary = "one row per dispatch and copy with resources and counters, for spreadsheets"
    suffix = ".csv"

    def export(self, request: ExportRequest) -> bytes:
        run = _run(request)
        from rpl_report.rows import to_csv

        return to_csv(run.work, run.counters())


class ParquetExporter(Exporter):
    name = "parquet"
    summary = "the rows of csv with types, for data frames"
    suffix = ".parquet"
    binary = True

    def export(self, request: ExportRequest) -> bytes:
        run = _run(request)
        from rpl_report.rows import to_parquet

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
        from rpl_report.rows import exported_run
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
