"""For programs: all documents as one JSON object, the table of kernels as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rpl_analysis.options import NAMES
from rpl_core.interfaces.renderer import Renderer, RenderRequest
from rpl_core.text.safety import harmless_json
from rpl_report.documents import report_documents
from rpl_report.kernel_choice import chosen_kernels
from rpl_report.options import ALL, TOP

if TYPE_CHECKING:
    from rpl_analysis.contracts.profile import KernelProfile

__all__ = ["CsvRenderer", "JsonRenderer"]

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
        from rpl_report.export.csv_rows import cell_text

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
