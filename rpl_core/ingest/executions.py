"""Which recordings are processes of one run, and which are repeated runs: by evidence, and said.

Processes of one run live at the same time, repeated runs do not. Where lifetimes are not recorded the times
of the work stand for them. A process id that occurs twice means two runs, and clocks of different machines
can't be compared; what that leaves open counts as repeated runs until the user says otherwise.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.errors import BadDataError
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.merge import merge_traces
from rpl_core.model.trace import TraceRole
from rpl_core.text.safety import shorten
from rpl_core.text.table import counted

if TYPE_CHECKING:
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Trace

    Life = tuple[str, int, int]  # clock, begin, end


def by_evidence(recording: Recording) -> Recording:
    """``recording`` with the traces of one run as one trace, and a word on what was assumed."""
    runs = recording.timing_runs
    if len(runs) < 2:
        return recording
    lives = [_life(run) for run in runs]
    groups = _groups(runs, lives)
    merged = tuple(merge_traces([runs[i] for i in group]) for group in groups)
    if len(merged) > 1:
        require_one_device(recording)
        _require_repeats([run for run in merged if len(run.dispatches)])
    return _with_runs(recording, merged, _assumed(groups, lives))


def as_ranks(recording: Recording) -> Recording:
    """The user's word: all are processes of one run."""
    return _with_runs(recording, (merge_traces(recording.timing_runs),) if recording.timing_runs else ())


def require_one_device(recording: Recording) -> None:
    """Raise ``BadDataError`` for traces of different GPUs, which nothing makes runs of one program."""
    known = [(trace, found) for trace in recording.traces if (found := _architectures(trace))]
    one, left = known[0] if known else (None, ())
    for other, right in known:
        if one is not None and left != right:
            raise BadDataError(
                f"{_place(one)} and {_place(other)} were recorded on different GPUs"
                f" ({', '.join(left)} and {', '.join(right)}), so they are not runs of one program",
                next_step="analyse each by itself, or compare programs, not GPUs",
            )


def _architectures(trace: Trace) -> tuple[str, ...]:
    """Of the GPUs that executed work."""
    used = {int(agent) for agent in set(trace.dispatches.agent.tolist()) if agent >= 0}
    names = {trace.agents[index].architecture for index in used if trace.agents[index].kind == "GPU"}
    return tuple(sorted(name for name in names if name))


def _require_repeats(runs: Sequence[Trace]) -> None:
    """Raise ``BadDataError`` for runs that launch other kernels, or the same another number of times.

    Repeated runs of one program launch the same; what does not is another program, or one of its processes.
    """
    launches = [(run, _launches(run)) for run in runs]
    for other, launched in launches[1:]:
        first, expected = launches[0]
        if launched == expected:
            continue
        only = sorted(expected.keys() ^ launched.keys())
        differing = sorted(
            name for name in expected.keys() & launched.keys() if expected[name] != launched[name]
        )
        name = shorten((only or differing)[0], 60)
        what = (
            f"kernels in one of them only: {name}" + (f" and {len(only) - 1} more" if only[1:] else "")
            if only
            else f"{name} was launched {expected[differing[0]]} and {launched[differing[0]]} times"
        )
        raise BadDataError(
            f"{_place(first)} and {_place(other)} are not runs of one program: {what}",
            cause="two programs lie in one folder, or processes of one run whose clocks don't tell",
            next_step="analyse each by itself, or say what they are: --ranks (processes of one run), or"
            " --each-is-a-run (repeated runs of a program that varies)",
        )


def _place(trace: Trace) -> str:
    return trace.source.paths[0] if trace.source.paths else "a recording"


def _launches(trace: Trace) -> Counter[str]:
    counts = np.bincount(trace.dispatches.kernel[trace.dispatches.kernel >= 0], minlength=len(trace.kernels))
    launched: Counter[str] = Counter()
    for kernel, count in zip(trace.kernels, counts.tolist(), strict=True):
        if count:
            launched[kernel.name] += count
    return launched


def require_one_program(recording: Recording) -> None:
    """Raise ``BadDataError`` for counter passes of which one knows less than half of the other's kernels.

    Passes of one program launch the same kernels; without a timing run nothing else connects them.
    """
    passes = [(t, {kernel.name for kernel in t.kernels}) for t in recording.counter_passes if t.kernels]
    for (one, names), (other, others) in itertools.combinations(passes, 2):
        if not recording.timing_runs and 2 * len(names & others) < min(len(names), len(others)):
            raise BadDataError(
                f"{one.source.paths[-1]} and {other.source.paths[-1]} are not of one program: they share"
                f" {len(names & others)} of {len(names)} and {len(others)} kernels",
                next_step="analyse each by itself; if they are of one program, name both files",
            )


def _with_runs(recording: Recording, runs: tuple[Trace, ...], *said: Diagnostic) -> Recording:
    others = tuple(trace for trace in recording.traces if trace.role is not TraceRole.TIMING)
    return attrs.evolve(recording, traces=(*runs, *others), diagnostics=(*recording.diagnostics, *said))


def _groups(runs: Sequence[Trace], lives: Sequence[Life | None]) -> list[list[int]]:
    """Places of traces that overlaps on one clock connect, each group and the groups in their order."""
    groups = [[i] for i, life in enumerate(lives) if life is None]
    clock, latest = None, 0
    for (node, begin, end), i in sorted((life, i) for i, life in enumerate(lives) if life is not None):
        if node == clock and begin < latest:
            groups[-1].append(i)
        else:
            groups.append([i])
            clock, latest = node, 0
        latest = max(latest, end)
    parts = [[[i] for i in group] if _repeats([runs[i] for i in group]) else [group] for group in groups]
    return sorted(sorted(group) for part in parts for group in part)


def _repeats(runs: Sequence[Trace]) -> bool:
    pids = [process.pid for run in runs for process in run.processes if process.pid > 0]
    return len(pids) != len(set(pids))


def _life(run: Trace) -> Life | None:
    clocks = {process.node for process in run.processes}
    if len(clocks) != 1:
        return None
    times = [time for p in run.processes for time in (p.begin_ns, p.end_ns) if time is not None]
    if len(times) < 2 * len(run.processes):
        rows = [rows for rows in (run.dispatches, run.copies) if rows is not None and len(rows)]
        times = [time for r in rows for time in (int(r.begin_ns.min()), int(r.end_ns.max()))]
    return (clocks.pop(), min(times), max(times)) if times else None


def _assumed(groups: Sequence[Sequence[int]], lives: Sequence[Life | None]) -> Diagnostic:
    known = None not in lives and len({life[0] for life in lives if life}) == 1
    runs = "one run" if len(groups) == 1 else counted(len(groups), "run")
    return Diagnostic(
        "ingest.runs_assumed",
        f"{len(lives)} recordings are taken for {runs}: what was made at the same time is one run",
        severity=Severity.INFO if known else Severity.WARNING,
        cause=None if known else "clocks of several machines, or times that are not recorded, tell nothing",
        remedy="`rpl analyze` takes them for one run with --ranks, for repeated runs with --each-is-a-run",
    )
