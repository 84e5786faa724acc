"""What was wrong with counter passes, gathered while they are joined and told as diagnostics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.model.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import Trace

__all__ = ["JoinReport"]


@attrs.define
class JoinReport:
    """Counts of what was left out, and the largest disagreement between passes."""

    invalid: int = 0
    repeated: int = 0
    incomplete: int = 0
    nameless: int = 0
    geometry: int = 0
    turns: int = 0  # kernels whose counter groups took turns
    wave_diagnostics: list[Diagnostic] = attrs.field(factory=list)
    differing: dict[str, float] = attrs.field(factory=dict)

    def add_readings(self, invalid: int, repeated: int, incomplete: int) -> None:
        self.invalid += invalid
        self.repeated += repeated
        self.incomplete += incomplete

    def add_differences(self, counter: str, differences: NDArray[np.float64]) -> None:
        if differences.size:
            self.differing[counter] = max(self.differing.get(counter, 0.0), float(differences.max()))

    def add_untrue_waves(
        self, trace: Trace, untrue: NDArray[np.bool_], counter: str, counted: NDArray[np.float64]
    ) -> None:
        """Note dispatches whose ``counter`` of waves is not their number of waves."""
        if not untrue.any():
            return
        example = int(np.flatnonzero(untrue)[0])
        kernel = trace.kernels[int(trace.dispatches.kernel[example])].name
        self.wave_diagnostics.append(
            Diagnostic(
                "counters.waves_mismatch",
                f"{counter} is {counted[example]:.0f} for a launch of {kernel} with another number of waves;"
                " the counters of these dispatches are not used",
                Severity.ERROR,
                cause="the profiler added several passes up, or counted only a part of the GPU",
                remedy="collect again with a current rocprofv3, one counter pass per run",
                where=trace.source.paths[0] if trace.source.paths else None,
                count=int(untrue.sum()),
            )
        )

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return (*self.wave_diagnostics, *self._left_out(), *self._disagreement())

    def _left_out(self) -> list[Diagnostic]:
        candidates = [
            Diagnostic(
                "counters.geometry_mismatch",
                "launches with another geometry than in the first counter pass are not used",
                cause="the application does not launch the same kernels in the same order in every run",
                remedy="fix its random seed and thread order, or collect all counters in one pass",
                count=self.geometry,
            ),
            Diagnostic(
                "counters.invalid_value",
                "counter readings that are negative or not finite are not used",
                cause="a damaged or hand-edited recording",
                remedy="collect the counters again",
                count=self.invalid,
            ),
            Diagnostic(
                "counters.instances_incomplete",
                "counter readings that lack hardware instances are not used",
                cause="the profiler lost rows of some XCDs or channels",
                remedy="collect the counters again",
                count=self.incomplete,
            ),
            Diagnostic(
                "counters.repeated_reading",
                "repeated readings of one counter for one dispatch: the first is used, none are added",
                cause="a profiler build that replays a dispatch once per pass",
                count=self.repeated,
            ),
            Diagnostic(
                "counters.turns_joined",
                "groups of counters took turns from launch to launch of these kernels: their figures join"
                " different launches, and are estimates",
                Severity.INFO,
                remedy="collect all groups of each launch: a run per group, or kernel replay",
                count=self.turns,
            ),
            Diagnostic(
                "counters.unknown_kernel",
                "dispatches without a kernel name have no place in the counter table",
                Severity.INFO,
                count=self.nameless,
            ),
        ]
        return [diagnostic for diagnostic in candidates if diagnostic.count]

    def _disagreement(self) -> list[Diagnostic]:
        if not self.differing:
            return []
        worst = max(sorted(self.differing), key=lambda name: self.differing[name])
        return [
            Diagnostic(
                "counters.passes_disagree",
                "counters read in several passes differ; the value of the preferred pass is used"
                f" (largest difference {100 * self.differing[worst]:.0f} %, {worst})",
                Severity.INFO,
                cause="cycle counters vary between runs; event counters should not",
                count=len(self.differing),
            )
        ]
