"""For programs: all documents as one JSON object, the table of kernels as CSV, findings with a line as SARIF.

SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html). A finding without a line has
no place in a source and is left out; the reports hold it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rpl_analysis.options import NAMES
from rpl_core.interfaces.section import Renderer, RenderRequest, SectionRequest
from rpl_core.text import harmless_json, readable
from rpl_report.documents import claims_of, report_documents
from rpl_report.options import ALL, TOP, chosen_kernels

if TYPE_CHECKING:
    from rpl_analysis.contracts.profile import KernelProfile
    from rpl_core.interfaces.section import Place

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
        from rpl_report.export.rows import cell_text

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


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_RULE = "rpl/hot-line"
_LONGEST = 400


class SarifRenderer(Renderer):
    name = "sarif"
    summary = "findings with a line of source, for code scanning and editors"
    suffix = ".sarif"

    def render(self, request: RenderRequest) -> str:
        from rpl_core import __version__

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
        document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
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
