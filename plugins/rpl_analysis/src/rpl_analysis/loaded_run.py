"""A run for notebooks: documents as objects, kernels and dispatches as columns."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rpl_analysis.documents import AnalysisKind, DagKind, ProfileKind, RooflineKind
from rpl_analysis.documents.load import load_document
from rpl_analysis.text import shown_names

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from rpl_analysis.contracts.analysis import AnalysisDocument
    from rpl_analysis.contracts.dag import DagDocument
    from rpl_analysis.contracts.profile import KernelProfile, ProfileDocument
    from rpl_analysis.contracts.roofline import RooflineDocument

__all__ = ["LoadedRun"]

_OF_KERNEL = ("launches", "time_share", "runtime_ms", "mean_ns", "median_ns", "min_ns", "max_ns")


class LoadedRun:
    """What ``rpl_analysis.load`` gives. Documents are read when they are looked at, and checked."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        _ = self.profile  # says at once where there is no run

    @cached_property
    def profile(self) -> ProfileDocument:
        return cast("ProfileDocument", load_document(self.directory, ProfileKind()))

    @cached_property
    def roofline(self) -> RooflineDocument:
        return cast("RooflineDocument", load_document(self.directory, RooflineKind()))

    @cached_property
    def dag(self) -> DagDocument:
        return cast("DagDocument", load_document(self.directory, DagKind()))

    @cached_property
    def analysis(self) -> AnalysisDocument:
        return cast("AnalysisDocument", load_document(self.directory, AnalysisKind()))

    def kernels(self) -> Mapping[str, NDArray[Any]]:
        """A row per kernel in the order of the document; unknown figures are NaN.

        ``name`` is the short name of the reports, ``recorded_name`` the one to join other documents by.
        """
        kernels = self.profile.kernels
        shown = shown_names(kernel.name for kernel in kernels)
        columns: dict[str, NDArray[Any]] = {
            "name": np.array([shown[kernel.name] for kernel in kernels], dtype=object),
            "recorded_name": np.array([kernel.name for kernel in kernels], dtype=object),
            "bottleneck": np.array([kernel.bottleneck for kernel in kernels], dtype=object),
        }
        columns |= {field: _figures([getattr(k, field) for k in kernels]) for field in _OF_KERNEL}
        figures = [_figures_of(kernel) for kernel in kernels]
        names = _figures_of(kernels[0]) if kernels else {}
        return columns | {name: _figures([row[name] for row in figures]) for name in names}

    def dispatches(self, run: int = 0) -> Mapping[str, NDArray[Any]]:
        """A row per dispatch of a timing run, as recorded; needs a run directory with its recording.

        Of a run that was analysed with ``--range`` only what the documents speak of.
        """
        from rpl_analysis.phases import restricted
        from rpl_core.cli.session import Session
        from rpl_core.errors import UsageError
        from rpl_core.ingest import load_recording

        recording = load_recording([self.directory], Session().host.catalog.readers().contributions)
        runs = restricted(recording, self.profile.range).timing_runs
        if not 0 <= run < len(runs):
            raise UsageError(f"there is no timing run {run}: the recording has {len(runs)}, counted from 0")
        trace = runs[run]
        names = np.array([kernel.name for kernel in trace.kernels], dtype=object)
        rows = trace.dispatches
        columns = {field: getattr(rows, field) for field in ("agent", "stream", "begin_ns", "end_ns")}
        return {"kernel": names[rows.kernel], **columns, "duration_ns": rows.duration_ns()}


def _figures_of(kernel: KernelProfile) -> dict[str, float | None]:
    roofline = kernel.roofline
    return {
        "occupancy": kernel.occupancy.theoretical,
        "criticality_weight": kernel.criticality_weight,
        "slack_ns": kernel.slack_ns,
        "operational_intensity": roofline.operational_intensity if roofline else None,
        "achieved_gflops": roofline.achieved_gflops if roofline else None,
        "achieved_gbps": roofline.achieved_gbps if roofline else None,
    }


def _figures(values: list[float | None]) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
