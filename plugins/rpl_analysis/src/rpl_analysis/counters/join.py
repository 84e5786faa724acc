"""Join the counter passes of a recording into one table per kernel.

Values of the same counter from several passes are compared and one is taken; they are never added up. A
dispatch whose geometry differs between passes, or whose counted waves are not those launched, gives nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from rpl_analysis.counters.join_report import JoinReport
from rpl_analysis.counters.model import JoinedCounters, KernelCounters
from rpl_analysis.counters.occurrences import JointRows, number_dispatches
from rpl_analysis.counters.pass_columns import WaveCheck, read_columns, wave_check_of
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from rpl_core.model.device import Architecture, DeviceModel
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Trace

__all__ = ["JoinRules", "join_counters", "joint_columns"]

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
        if not any(_is_part(patterns[number], other) for other in patterns)
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


def _is_part(pattern: NDArray[np.bool_], other: NDArray[np.bool_]) -> bool:
    return bool((pattern <= other).all() and (pattern != other).any())


def _split_by_kernel(columns: dict[str, NDArray[np.float64]], joint: JointRows) -> dict[str, KernelCounters]:
    kernels = {}
    for name, (begin, end) in sorted(joint.spans.items()):
        own = {c: column[begin:end] for c, column in columns.items() if not np.isnan(column[begin:end]).all()}
        kernels[name] = KernelCounters(name, end - begin, own)
    return kernels
