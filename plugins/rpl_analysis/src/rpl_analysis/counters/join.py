"""Join the counter passes of a recording into one table per kernel.

Values of the same counter from several passes are compared and one is taken; they are never added up. A
dispatch whose geometry differs between passes, or whose counted waves are not those launched, gives nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from rpl_analysis.counters.quantities import JoinedCounters, KernelCounters
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.device import Architecture, DeviceModel
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import CounterValues, Float64Column, Int64Column, Trace

# The counter values of one pass as columns, and whether they describe the launches that they claim to.
#
# One value per dispatch, hardware instances summed. Values that cannot be right (not finite, negative, some
# instances missing) are left out and counted, so that a sum never silently lacks a part. Some profiler builds
# add the counters of several passes up, or lose part of the GPU: the counter of launched waves, which must
# equal what the geometry gives, shows it (docs/reference/formats.md, section 2). Which one it is, is a fact
# of the architecture (``RecordQuirks.wave_counter``).

#: Chosen: waves of another process or a trap handler may slip in; a lost part or a summed pass is > 12 %.
WAVE_TOLERANCE = 0.01


@frozen(eq=False)
class PassColumns:
    """Counter name -> one value per dispatch of the pass, NaN where it was not read or is not usable.

    ``invalid`` counts readings that are negative or not finite, ``repeated`` readings of the same
    (dispatch, counter, instance) beyond the first, ``incomplete`` (dispatch, counter) pairs with fewer
    instances than the same counter has elsewhere on that GPU.
    """

    columns: dict[str, NDArray[np.float64]]
    invalid: int = 0
    repeated: int = 0
    incomplete: int = 0


def read_columns(trace: Trace) -> PassColumns:
    """Sum the counter rows of ``trace`` over instances; ``trace.counters`` must be present."""
    counters = trace.counters
    assert counters is not None
    order = np.argsort(counters.counter, kind="stable")
    bounds = np.searchsorted(counters.counter[order], np.arange(len(trace.counter_names) + 1))
    columns: dict[str, NDArray[np.float64]] = {}
    invalid = repeated = incomplete = 0
    for number, name in enumerate(trace.counter_names):
        rows = order[bounds[number] : bounds[number + 1]]
        if not rows.size:
            continue
        first = _first_readings(counters, rows)
        repeated += rows.size - first.size
        values = counters.value[first]
        bad = ~np.isfinite(values) | (values < 0)
        invalid += int(bad.sum())
        column, short = _sum_instances(counters.dispatch[first], values, bad, trace.dispatches.agent)
        incomplete += short
        columns[name] = column
    return PassColumns(columns, invalid, repeated, incomplete)


def _first_readings(counters: CounterValues, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first row of each (dispatch, instance); a recorded sum (-1) displaces rows per instance."""
    dispatch, instance = counters.dispatch[rows], counters.instance[rows].astype(np.int64)
    summed = instance < 0
    if summed.any() and not summed.all():
        has_sum = np.zeros(int(dispatch.max()) + 1, dtype=np.bool_)
        has_sum[dispatch[summed]] = True
        keep = summed | ~has_sum[dispatch]
        rows, dispatch, instance = rows[keep], dispatch[keep], instance[keep]
    width = int(instance.max()) + 2
    _, first = np.unique(dispatch * width + instance + 1, return_index=True)
    readings: NDArray[np.int64] = rows[np.sort(first)]
    return readings


def _sum_instances(
    dispatch: NDArray[np.int64],
    values: NDArray[np.float64],
    bad: NDArray[np.bool_],
    agent: NDArray[np.int32],
) -> tuple[NDArray[np.float64], int]:
    """Sum per dispatch, NaN where a part is bad or missing, and how many dispatches lacked instances.

    A dispatch must have as many instances as any other on the same GPU.
    """
    count = agent.size
    sums = np.bincount(dispatch, weights=np.where(bad, 0.0, values), minlength=count)
    instances = np.bincount(dispatch, minlength=count)
    most = np.zeros(int(agent.max()) + 2, dtype=np.int64)  # the last entry is for an unknown GPU (-1)
    np.maximum.at(most, agent, instances)
    short = (instances > 0) & (instances < most[agent])
    spoiled = np.bincount(dispatch[bad], minlength=count) > 0
    column = np.where((instances == 0) | short | spoiled, np.nan, sums)
    return column, int(short.sum())


@frozen
class WaveCheck:
    """The counter of launched waves, and the wave sizes that kernels may have whatever the driver says."""

    counter: str
    wave_sizes: tuple[int, ...] = ()

    def counted(self, columns: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64] | None:
        """The counter's column, the sum over instances where both were recorded."""
        return columns.get(f"{self.counter}_sum", columns.get(self.counter))

    def untrue(self, trace: Trace, counted: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Dispatches whose waves contradict their geometry; False where either is unknown."""
        dispatches, shapes = trace.dispatches, trace.shapes
        if not len(shapes):
            return np.zeros(len(dispatches), dtype=np.bool_)
        items = np.prod(shapes.workgroup, axis=1)
        extents = np.concatenate([shapes.workgroup, shapes.grid], axis=1)
        known: NDArray[np.bool_] = np.all(extents > 0, axis=1)
        matches = np.zeros(len(dispatches), dtype=np.bool_)
        sizes = self._sizes(trace)
        for wave_size in sizes:
            per_workgroup = -(-items[dispatches.shape] // np.maximum(wave_size, 1))
            launched = shapes.workgroups()[dispatches.shape] * per_workgroup
            matches |= (wave_size > 0) & (np.abs(counted - launched) <= WAVE_TOLERANCE * launched)
        sized = np.any([size > 0 for size in sizes], axis=0)
        checkable: NDArray[np.bool_] = known[dispatches.shape] & (dispatches.shape >= 0) & ~np.isnan(counted)
        untrue: NDArray[np.bool_] = checkable & sized & ~matches
        return untrue

    def _sizes(self, trace: Trace) -> list[NDArray[np.int64]]:
        """Possible wave sizes per dispatch, 0 where the driver did not state one."""
        stated = np.array([agent.wave_size or 0 for agent in trace.agents] + [0], dtype=np.int64)
        of_agents = stated[trace.dispatches.agent]
        return [of_agents, *(np.full(len(of_agents), size, dtype=np.int64) for size in self.wave_sizes)]


def wave_check_of(architecture: Architecture | None) -> WaveCheck | None:
    """The check that the architecture's facts allow; ``None`` where no counter of waves is known."""
    if architecture is None or architecture.record_quirks.wave_counter is None:
        return None
    files = architecture.occupancy.register_files if architecture.occupancy is not None else ()
    return WaveCheck(architecture.record_quirks.wave_counter, tuple(file.wave_size for file in files))


# The joint numbering of dispatches over counter passes: same process, GPU, kernel and occurrence.
#
# Dispatch ids alone do not join passes, because an application need not launch in the same order twice
# (docs/reference/formats.md, 4.4). The n-th launch of a kernel on a GPU by a process, in submission
# order, is taken for the same dispatch in every pass; its geometry is compared elsewhere.

#: (kernel name, position of the process in its trace, KFD node id of the GPU)
_Launcher = tuple[str, int, int]


@frozen(eq=False)
class JointRows:
    """``rows[p][d]`` is the joint row of dispatch ``d`` of pass ``p``; -1 where its kernel is unknown.

    The rows of one kernel are contiguous: ``spans`` maps its name to (first row, row after the last).
    """

    rows: tuple[NDArray[np.int64], ...]
    spans: dict[str, tuple[int, int]]
    count: int


@frozen(eq=False)
class _PassOccurrences:
    launchers: tuple[_Launcher, ...]
    counts: NDArray[np.int64]  # launches of each launcher
    launcher_of: NDArray[np.int64]  # (dispatches,), -1 where the kernel is unknown
    occurrence: NDArray[np.int64]


def number_dispatches(passes: Sequence[Trace]) -> JointRows:
    """Give every dispatch of every pass its joint row; rows are in the order of (name, process, GPU, n)."""
    counted = [_count_occurrences(trace) for trace in passes]
    most: dict[_Launcher, int] = {}
    for occurrences in counted:
        for launcher, count in zip(occurrences.launchers, occurrences.counts.tolist(), strict=True):
            most[launcher] = max(count, most.get(launcher, 0))
    first: dict[_Launcher, int] = {}
    spans: dict[str, tuple[int, int]] = {}
    end = 0
    for launcher in sorted(most):
        first[launcher] = end
        begin = spans.get(launcher[0], (end, end))[0]
        end += most[launcher]
        spans[launcher[0]] = (begin, end)
    return JointRows(tuple(_joint_rows(occurrences, first) for occurrences in counted), spans, end)


def _joint_rows(occurrences: _PassOccurrences, first: dict[_Launcher, int]) -> NDArray[np.int64]:
    offsets = np.array([first[launcher] for launcher in occurrences.launchers] + [0], dtype=np.int64)
    known = occurrences.launcher_of >= 0
    return np.where(known, offsets[occurrences.launcher_of] + occurrences.occurrence, -1)


def _count_occurrences(trace: Trace) -> _PassOccurrences:
    dispatches = trace.dispatches
    names = sorted({kernel.name for kernel in trace.kernels})
    number = {name: i for i, name in enumerate(names)}
    name_of = np.array([number[kernel.name] for kernel in trace.kernels] + [-1], dtype=np.int64)
    node_of = np.array([agent.index for agent in trace.agents] + [-1], dtype=np.int64)
    keys = np.stack(
        [name_of[dispatches.kernel], dispatches.process.astype(np.int64), node_of[dispatches.agent]], axis=1
    )
    known = dispatches.kernel >= 0
    launchers, inverse = np.unique(keys[known], axis=0, return_inverse=True)
    launcher_of = np.full(len(dispatches), -1, dtype=np.int64)
    launcher_of[known] = inverse.reshape(-1)
    order = np.lexsort((dispatches.begin_ns, dispatches.dispatch_id, launcher_of))
    counts = np.bincount(launcher_of[known], minlength=len(launchers)).astype(np.int64)
    return _PassOccurrences(
        tuple((names[n], p, a) for n, p, a in launchers.tolist()),
        counts,
        launcher_of,
        _ranks(launcher_of, order),
    )


def _ranks(group: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position of each element within its group, groups being contiguous in ``order``."""
    ordered = group[order]
    new_group = np.ones(ordered.size, dtype=np.bool_)
    new_group[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(new_group)
    sizes = np.diff(np.append(starts, ordered.size))
    ranks = np.empty(group.size, dtype=np.int64)
    ranks[order] = np.arange(group.size, dtype=np.int64) - np.repeat(starts, sizes)
    return ranks


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
    recorded = np.concatenate([shapes, unknown])[trace.dispatches.shape]
    known = rows >= 0
    differs = np.zeros(rows.size, dtype=np.bool_)
    differs[known] = seen[rows[known]] & (geometry[rows[known]] != recorded[known]).any(axis=1)
    fresh = known.copy()
    fresh[known] = ~seen[rows[known]]
    geometry[rows[fresh]] = recorded[fresh]
    seen[rows[fresh]] = True
    report.geometry += int(differs.sum())
    return differs


def _counter_names(passes: Sequence[_JoinedPass], pass_local: tuple[str, ...]) -> list[str]:
    names = {name for joined in passes for name in joined.columns}
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

    def preference(joined: _JoinedPass) -> tuple[int, int]:
        members = len(bases & {counter.removesuffix("_sum") for counter in joined.columns})
        return -members, -len(joined.columns)

    return sorted((joined for joined in passes if name in joined.columns), key=preference)


def _merge_column(
    name: str, passes: Sequence[_JoinedPass], count: int, report: JoinReport
) -> NDArray[np.float64]:
    merged = np.full(count, np.nan)
    for joined in passes:
        current, other = merged[joined.rows], joined.columns[name]
        scale = np.maximum(np.abs(current), np.abs(other))
        with np.errstate(invalid="ignore"):
            difference = np.abs(current - other) / np.where(scale > 0, scale, 1.0)
        report.add_differences(name, difference[difference > AGREEMENT_TOLERANCE])
        merged[joined.rows] = np.where(np.isnan(current), other, current)
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
    shortest = min(len(turn) for turn in launches)
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
        of_kernel = {
            c: column[begin:end] for c, column in columns.items() if not np.isnan(column[begin:end]).all()
        }
        kernels[name] = KernelCounters(name, end - begin, of_kernel)
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
