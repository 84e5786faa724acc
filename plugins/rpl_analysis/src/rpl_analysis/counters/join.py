"""Join the counter passes of a recording into one table per kernel.

Values of the same counter from several passes are compared and one is taken; they are never added up. A
dispatch whose geometry differs between passes, or whose counted waves are not those launched, gives nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from rpl_analysis.counters.passes import JointRows, WaveCheck, number_dispatches, read_columns, wave_check_of
from rpl_analysis.counters.quantities import JoinedCounters, KernelCounters
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from rpl_core.model.device import Architecture, DeviceModel
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Float64Column, Int64Column, Trace

#: Relative difference between passes that is worth a line; chosen: cycle counters scatter by a few percent.
AGREEMENT_TOLERANCE = 0.05


@frozen(eq=False)
class _JoinedPass:
    """Usable values of one pass: joint row of each kept dispatch, and the columns over those dispatches."""

    rows: NDArray[np.int64]
    columns: dict[str, NDArray[np.float64]]


@frozen
class JoinRules:
    """What is known of the counters before they are joined.

    ``same_pass`` are groups of counters that only mean something together (``CounterMap.same_pass``): their
    values are taken from the first pass that holds most of the group. Counters whose names begin with one of
    ``pass_local`` are left out.
    """

    same_pass: tuple[tuple[str, ...], ...] = ()
    pass_local: tuple[str, ...] = ()
    waves: WaveCheck | None = None

    @classmethod
    def of(cls, device: DeviceModel | None, architecture: Architecture | None) -> JoinRules:
        return cls(
            device.counter_map.same_pass if device is not None else (),
            architecture.record_quirks.pass_local_counters if architecture is not None else (),
            wave_check_of(architecture),
        )


_NO_RULES: Final = JoinRules()


def join_counters(recording: Recording, rules: JoinRules = _NO_RULES) -> JoinedCounters:
    """The counter table of ``recording``."""
    traces = recording.counter_passes
    if not traces:
        return JoinedCounters({})
    joint = number_dispatches(traces)
    columns, report = joint_columns(traces, joint, rules)
    kernels = _split_by_kernel(columns, joint)
    if len(traces) == 1:  # with a pass per group every launch has all of them
        kernels = {name: _turns_joined(kernel) for name, kernel in kernels.items()}
        report.turns = sum(kernel.in_turns for kernel in kernels.values())
    return JoinedCounters(kernels, report.diagnostics())


def joint_columns(
    traces: Sequence[Trace], joint: JointRows, rules: JoinRules
) -> tuple[dict[str, NDArray[np.float64]], JoinReport]:
    """Counter name -> value per joint row, NaN where none was read, and what was wrong with the passes."""
    report = JoinReport()
    passes = list(_usable_passes(traces, joint, rules.waves, report))
    columns = {
        name: _merge_column(name, _preferred(name, passes, rules.same_pass), joint.count, report)
        for name in _counter_names(passes, rules.pass_local)
    }
    return columns, report


def _usable_passes(
    traces: Sequence[Trace], joint: JointRows, waves: WaveCheck | None, report: JoinReport
) -> Iterator[_JoinedPass]:
    geometry = np.full((joint.count, 6), -1, dtype=np.int64)
    seen = np.zeros(joint.count, dtype=np.bool_)
    for trace, rows in zip(traces, joint.rows, strict=True):
        read = read_columns(trace)
        report.add_readings(read.invalid, read.repeated, read.incomplete)
        usable = rows >= 0
        report.nameless += int((~usable).sum())
        usable &= ~_contradicting_geometry(trace, rows, geometry, seen, report)
        counted = waves.counted(read.columns) if waves is not None else None
        if waves is not None and counted is not None:
            untrue = waves.untrue(trace, counted) & usable
            report.add_untrue_waves(trace, untrue, waves.counter, counted)
            usable &= ~untrue
        yield _JoinedPass(rows[usable], {name: column[usable] for name, column in read.columns.items()})


def _contradicting_geometry(
    trace: Trace,
    rows: NDArray[np.int64],
    geometry: NDArray[np.int64],
    seen: NDArray[np.bool_],
    report: JoinReport,
) -> NDArray[np.bool_]:
    """Dispatches launched with another geometry than in the first pass; fills ``geometry`` and ``seen``."""
    shapes = np.concatenate([trace.shapes.workgroup, trace.shapes.grid], axis=1)
    unknown = np.full((1, 6), -1, dtype=np.int64)
    own = np.concatenate([shapes, unknown])[trace.dispatches.shape]
    known = rows >= 0
    differs = np.zeros(rows.size, dtype=np.bool_)
    differs[known] = seen[rows[known]] & (geometry[rows[known]] != own[known]).any(axis=1)
    fresh = known.copy()
    fresh[known] = ~seen[rows[known]]
    geometry[rows[fresh]] = own[fresh]
    seen[rows[fresh]] = True
    report.geometry += int(differs.sum())
    return differs


def _counter_names(passes: Sequence[_JoinedPass], pass_local: tuple[str, ...]) -> list[str]:
    names = {name for one in passes for name in one.columns}
    return sorted(name for name in names if not name.startswith(pass_local))


def _preferred(
    name: str, passes: Sequence[_JoinedPass], same_pass: Sequence[Sequence[str]]
) -> list[_JoinedPass]:
    """The passes that hold ``name``: most of its group first, then the fullest, then in pass order.

    A profiler may read a clock beside a special counter on one XCD only; the fullest pass is the main one.
    """
    base = name.removesuffix("_sum")
    group = next((set(g) for g in same_pass if base in {c.removesuffix("_sum") for c in g}), {name})
    bases = {counter.removesuffix("_sum") for counter in group}

    def preference(one: _JoinedPass) -> tuple[int, int]:
        members = len(bases & {counter.removesuffix("_sum") for counter in one.columns})
        return -members, -len(one.columns)

    return sorted((one for one in passes if name in one.columns), key=preference)


def _merge_column(
    name: str, passes: Sequence[_JoinedPass], count: int, report: JoinReport
) -> NDArray[np.float64]:
    merged = np.full(count, np.nan)
    for one in passes:
        current, other = merged[one.rows], one.columns[name]
        scale = np.maximum(np.abs(current), np.abs(other))
        with np.errstate(invalid="ignore"):
            difference = np.abs(current - other) / np.where(scale > 0, scale, 1.0)
        report.add_differences(name, difference[difference > AGREEMENT_TOLERANCE])
        merged[one.rows] = np.where(np.isnan(current), other, current)
    return merged


def _turns_joined(kernel: KernelCounters) -> KernelCounters:
    """``kernel`` with the n-th launch of every group of counters in row n, where groups took turns.

    They did where launches read different counters and none read those of another one and more: a launch
    that lost readings has a part of what others have.
    """
    names = list(kernel.columns)
    if not names:
        return kernel
    read = ~np.isnan(np.stack([kernel.columns[name] for name in names]))
    patterns, first, of_launch = np.unique(read.T, axis=0, return_index=True, return_inverse=True)
    whole = [
        number
        for number in np.argsort(first).tolist()
        # A launch whose counters another one read too, and more, lost readings.
        if not any(
            (patterns[number] <= other).all() and (patterns[number] != other).any() for other in patterns
        )
    ]
    if len(whole) < 2:
        return kernel
    launches = [np.flatnonzero(of_launch.reshape(-1) == number) for number in whole]
    shortest = min(len(own) for own in launches)
    # A counter that stands in several groups is taken from the first of them, never added up.
    group = {
        name: next(place for place, number in enumerate(whole) if patterns[number][row])
        for row, name in enumerate(names)
        if any(patterns[number][row] for number in whole)
    }
    columns = {name: np.full(kernel.launches, np.nan) for name in group}
    for name, place in group.items():
        columns[name][:shortest] = kernel.columns[name][launches[place][:shortest]]
    return KernelCounters(kernel.name, kernel.launches, columns, in_turns=True)


def _split_by_kernel(columns: dict[str, NDArray[np.float64]], joint: JointRows) -> dict[str, KernelCounters]:
    kernels = {}
    for name, (begin, end) in sorted(joint.spans.items()):
        own = {c: column[begin:end] for c, column in columns.items() if not np.isnan(column[begin:end]).all()}
        kernels[name] = KernelCounters(name, end - begin, own)
    return kernels


# What was wrong with counter passes, gathered while they are joined and told as diagnostics.


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


# Counter values for the dispatches of another run: those of a timing run, which was recorded without any.
#
# Dispatches are joined as counter passes are among themselves: same process, GPU, kernel, occurrence and
# geometry.


def counters_by_dispatch(
    recording: Recording, trace: Trace, architecture: Architecture | None = None
) -> Mapping[str, Float64Column]:
    """Counter name -> value per dispatch of ``trace`` (n,), NaN where none was read; sorted by name.

    Empty where nothing was counted. ``architecture`` says which counters show a damaged pass.
    """
    passes = recording.counter_passes
    if not passes:
        return {}
    joint = number_dispatches((*passes, trace))
    rows = joint.rows[-1]
    rules = JoinRules.of(None, architecture)
    columns, _ = joint_columns(passes, attrs.evolve(joint, rows=joint.rows[:-1]), rules)
    same = rows >= 0
    for counted, places in zip(passes, joint.rows, strict=False):
        same &= _same_geometry(trace, rows, counted, places, joint.count)
    return {name: np.where(same, column[rows], np.nan) for name, column in sorted(columns.items())}


def _same_geometry(
    trace: Trace, rows: Int64Column, counted: Trace, places: Int64Column, count: int
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """True unless ``counted`` holds the dispatch with another geometry."""
    known = np.full((count, 6), -1, dtype=np.int64)
    known[places[places >= 0]] = _geometry(counted)[places >= 0]
    recorded = known[rows]
    return np.asarray((recorded == _geometry(trace)).all(axis=1) | (recorded == -1).all(axis=1))


def _geometry(trace: Trace) -> Int64Column:
    shapes = np.concatenate([trace.shapes.workgroup, trace.shapes.grid], axis=1)
    unknown = np.full((1, 6), -1, dtype=np.int64)
    return np.asarray(np.concatenate([shapes, unknown])[trace.dispatches.shape])
