"""Who launched each kernel and copy: the operator, the module and the line of Python around the call.

The work's external id names the operator that was innermost when it was launched. Where a trace has none the
operator around the launching call on its thread stands for it. A backward operator runs on a thread of
autograd, outside of all modules: the link to its forward operator tells whose it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen
from rpl_torch.model import TORCH, TorchProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rpl_core.model.trace import Copies, Dispatches, Trace

    Int64Column = NDArray[np.int64]


_NONE = -1
_BLOCK = 1 << 16


@frozen(eq=False)
class Nesting:
    """Intervals by (thread, begin, longest first); ``parent`` is the row of the one around each, -1 for none.

    ``threads`` (t,) ascends and ``first`` (t + 1,) says where the rows of each begin.
    """

    begin_ns: Int64Column
    end_ns: Int64Column
    parent: NDArray[np.int32]
    threads: Int64Column
    first: Int64Column

    def innermost(self, thread: Int64Column, time_ns: Int64Column) -> Int64Column:
        """The row of the innermost interval around each moment, -1 where there is none."""
        inner = np.full(len(time_ns), _NONE, np.int64)
        if not len(self.parent):
            return inner
        place = np.searchsorted(self.threads, thread)
        for number in np.unique(place[place < len(self.threads)]).tolist():
            asked = np.flatnonzero((place == number) & (thread == self.threads[number]))
            low, high = int(self.first[number]), int(self.first[number + 1])
            row = low + np.searchsorted(self.begin_ns[low:high], time_ns[asked], side="right") - 1
            row[row < low] = _NONE
            inner[asked] = row
        while True:
            over = np.flatnonzero((inner >= 0) & (self.end_ns[inner] < time_ns))
            if not over.size:
                return inner
            inner[over] = self.parent[inner[over]]

    def nearest(self, chosen: NDArray[np.bool_]) -> Int64Column:
        """For each row itself or the nearest around it that is ``chosen``; -1 without one."""
        # Each row points at itself or one step outwards, the row behind the last stands for none; pointing
        # where that points to doubles the steps, so that stacks of any depth take few rounds.
        none = len(chosen)
        step = np.append(np.where(self.parent < 0, none, self.parent), none).astype(np.int32)
        chosen_rows = np.flatnonzero(chosen)
        step[chosen_rows] = chosen_rows
        while True:
            further = step[step]
            if np.array_equal(further, step):
                return np.where(step[:-1] == none, _NONE, step[:-1]).astype(np.int64)
            step = further


def nested(thread: Int64Column, begin_ns: Int64Column, end_ns: Int64Column) -> Nesting:
    """``Nesting`` of intervals in the order that it asks for."""
    threads, first = np.unique(thread, return_index=True)
    parent = np.empty(len(begin_ns), np.int32)
    around: list[tuple[int, int]] = []  # end and row of what is open
    number, starts = 0, [*first.tolist(), -1]
    # In blocks: millions of numbers as objects of Python would take most of the memory.
    for low in range(0, len(begin_ns), _BLOCK):
        block = slice(low, low + _BLOCK)
        parents: list[int] = []
        times = zip(begin_ns[block].tolist(), end_ns[block].tolist(), strict=True)
        for row, (begin, end) in enumerate(times, start=low):
            if row == starts[number]:
                around.clear()
                number += 1
            while around and around[-1][0] <= begin and around[-1][0] < end:
                around.pop()
            parents.append(around[-1][1] if around else _NONE)
            around.append((end, row))
        parent[block] = parents
    return Nesting(begin_ns, end_ns, parent, threads, np.append(first, len(begin_ns)).astype(np.int64))


_MODULE = "nn.Module: "
_LINE = re.compile(r"^(?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)$")
#: PyTorch's own files: a line in them says what the operator says already.
_LIBRARY = re.compile(r"(?:^|/)torch/")


@frozen(eq=False)
class Launches:
    """Columns over all work, dispatches before copies, each in the order of the trace; -1 for unknown.

    ``operator``, ``module`` and ``line`` point into the names below, ``inputs`` into ``given`` (name and
    inputs of a distinct kind of call), ``call`` numbers calls of operators. ``ancestors`` has for each name
    of ``modules`` the modules around it, itself included.
    """

    dispatches: int
    process: NDArray[np.int32]
    agent: NDArray[np.int32]
    begin_ns: Int64Column
    end_ns: Int64Column
    correlation_id: Int64Column
    submitted_ns: Int64Column  # begin of the launching call
    operator: Int64Column
    inputs: Int64Column
    call: Int64Column
    module: Int64Column
    line: Int64Column
    operators: tuple[str, ...]
    given: tuple[tuple[str, int, int], ...]  # operator, number of the process, its inputs
    modules: tuple[str, ...]
    ancestors: tuple[tuple[int, ...], ...]
    lines: tuple[str, ...]
    processes: tuple[TorchProcess, ...]
    torch_process: tuple[int, ...]  # index of the trace's process of each of them, -2 for none

    def duration_ns(self) -> Int64Column:
        return self.end_ns - self.begin_ns


class _Numbers(dict[object, int]):
    """The number of each key, in order of appearance."""

    def __missing__(self, key: object) -> int:
        self[key] = len(self)
        return self[key]


def find_launches(trace: Trace) -> Launches | None:
    """``None`` where the trace is none of torch.profiler."""
    processes = tuple(p for p in trace.extras.get(TORCH, ()) if isinstance(p, TorchProcess))
    if not processes:
        return None
    tables = [rows for rows in (trace.dispatches, trace.copies) if rows is not None]
    process = np.concatenate([rows.process for rows in tables])
    correlation = np.concatenate([rows.correlation_id for rows in tables])
    thread, submitted = _calls(trace, process, correlation)
    count = len(process)
    of_launch = {name: np.full(count, _NONE, np.int64) for name in _FOUND}
    names = {name: _Numbers() for name in ("operator", "inputs", "module", "line")}
    around: dict[int, tuple[int, ...]] = {}
    calls = 0
    number_of = {(p.guid, p.pid): i for i, p in enumerate(trace.processes)}
    of_trace = tuple(number_of.get((launching.guid, launching.pid), -2) for launching in processes)
    for number, launching in enumerate(processes):
        rows = np.flatnonzero(process == of_trace[number])
        if rows.size:
            process_launches = _OfProcess(launching, correlation[rows], thread[rows], submitted[rows])
            of_launch["call"][rows] = np.where(
                process_launches.operator >= 0, process_launches.operator + calls, _NONE
            )
            for name, column in process_launches.columns(number, names, around):
                of_launch[name][rows] = column
        calls += len(launching.operators)
    return Launches(
        dispatches=len(trace.dispatches),
        process=process,
        agent=np.concatenate([_gpu_of(rows) for rows in tables]),
        begin_ns=np.concatenate([rows.begin_ns for rows in tables]),
        end_ns=np.concatenate([rows.end_ns for rows in tables]),
        correlation_id=correlation,
        submitted_ns=submitted,
        **of_launch,
        operators=tuple(names["operator"]),  # type: ignore[arg-type]
        given=tuple(names["inputs"]),  # type: ignore[arg-type]
        modules=tuple(names["module"]),  # type: ignore[arg-type]
        ancestors=tuple(around.get(i, (i,)) for i in range(len(names["module"]))),
        lines=tuple(names["line"]),  # type: ignore[arg-type]
        processes=processes,
        torch_process=of_trace,
    )


_FOUND = ("operator", "inputs", "call", "module", "line")


def _gpu_of(rows: Dispatches | Copies) -> NDArray[np.int32]:
    if hasattr(rows, "agent"):
        return rows.agent
    return np.where(rows.destination_agent >= 0, rows.destination_agent, rows.source_agent).astype(np.int32)


def _calls(
    trace: Trace, process: NDArray[np.int32], correlation: Int64Column
) -> tuple[Int64Column, Int64Column]:
    """Thread and begin of the launching call of each row; -1 where it was not recorded."""
    calls = trace.api_calls
    unknown = np.full(len(process), _NONE, np.int64)
    if calls is None or not len(calls):
        return unknown, unknown.copy()
    keys = np.stack([calls.process.astype(np.int64), calls.correlation_id])
    order = np.lexsort((np.arange(keys.shape[1]), keys[1], keys[0]))
    ranked = _packed(keys[0][order], keys[1][order])
    wanted = _packed(process.astype(np.int64), correlation)
    place = np.minimum(np.searchsorted(ranked, wanted), len(order) - 1)
    row = order[place]
    known = (ranked[place] == wanted) & (calls.correlation_id[row] == correlation) & (correlation >= 0)
    return (
        np.where(known, calls.thread_id[row], _NONE),
        np.where(known, calls.begin_ns[row], _NONE),
    )


def _packed(process: Int64Column, correlation: Int64Column) -> Int64Column:
    """One number for both; ids beyond 48 bits are none that a profiler counts to."""
    return (process << 48) + (correlation & ((1 << 48) - 1))


class _OfProcess:
    """The launches of one process, found among its operators and frames."""

    def __init__(
        self, process: TorchProcess, correlation: Int64Column, thread: Int64Column, time_ns: Int64Column
    ) -> None:
        self.process = process
        operators, frames = process.operators, process.frames
        self.operators = nested(operators.thread_id, operators.begin_ns, operators.end_ns)
        self.frames = nested(frames.thread_id, frames.begin_ns, frames.end_ns)
        self.operator = self._operator(correlation, thread, time_ns)
        # Where the call is not recorded the operator's own begin is the moment of the launch.
        known = (time_ns < 0) & (self.operator >= 0)
        self.thread = np.where(known, _rows_or_none(operators.thread_id, self.operator), thread)
        self.time_ns = np.where(known, _rows_or_none(operators.begin_ns, self.operator), time_ns)
        self.frame = self.frames.innermost(self.thread, self.time_ns)
        self.forward_frame = self._forward_frame()
        self.names = process.names

    def _operator(self, correlation: Int64Column, thread: Int64Column, time_ns: Int64Column) -> Int64Column:
        """Row of the operator: the one that the work names, else the one around its call."""
        operators = self.process.operators
        external = _looked_up(self.process.launch_correlation, self.process.launch_external, correlation)
        # Of an operator and a range with one id the operator counts.
        order = np.lexsort((operators.is_range, operators.external_id))
        ids = operators.external_id[order]
        place = np.searchsorted(ids, external)
        named = np.minimum(place, max(len(ids) - 1, 0))
        hit = (external >= 0) & (place < len(ids))
        hit &= (ids[named] == external) if len(ids) else False
        row = order[named] if len(ids) else np.full(len(external), _NONE)
        inner = self.operators.innermost(thread, time_ns)
        around = _rows_or_none(self.operators.nearest(~operators.is_range), inner)
        around[time_ns < 0] = _NONE
        return np.where(hit, row, around).astype(np.int64)

    def columns(
        self, number: int, names: dict[str, _Numbers], around: dict[int, tuple[int, ...]]
    ) -> Iterator[tuple[str, Int64Column]]:
        """The columns that ``Launches`` has, by name."""
        operators = self.process.operators
        texts = self.names
        yield (
            "operator",
            _numbered(_rows_or_none(operators.name, self.operator), lambda i: names["operator"][texts[i]]),
        )
        width = len(self.process.inputs)
        kind = np.where(
            self.operator >= 0,
            _rows_or_none(operators.name, self.operator).astype(np.int64) * width
            + _rows_or_none(operators.inputs, self.operator),
            _NONE,
        )
        yield "inputs", _numbered(kind, lambda i: names["inputs"][texts[i // width], number, i % width])
        yield "module", self._modules(names["module"], around)
        yield "line", self._lines(names["line"])

    def _modules(self, numbers: _Numbers, around: dict[int, tuple[int, ...]]) -> Int64Column:
        """The innermost module around the launch, or around the forward operator of a backward one."""
        is_module = np.array([name.startswith(_MODULE) for name in self.names] or [False])
        frames = self.process.frames
        nearest = self.frames.nearest(is_module[frames.name] if len(frames) else np.zeros(0, np.bool_))
        frame = self._at_launch_or_forward(nearest)

        def name_of(row: int) -> int:
            chain: list[int] = []
            at = row
            while at >= 0:
                chain.append(numbers[self.names[int(frames.name[at])].removeprefix(_MODULE)])
                outside = int(self.frames.parent[at])
                at = int(nearest[outside]) if outside >= 0 else _NONE
            around.setdefault(chain[0], tuple(dict.fromkeys(chain)))
            return chain[0]

        return _numbered(frame, name_of)

    def _at_launch_or_forward(self, nearest: Int64Column) -> Int64Column:
        """``nearest`` of the frame around each launch, else of that around its forward operator."""
        at_launch = _rows_or_none(nearest, self.frame)
        return np.where(at_launch >= 0, at_launch, _rows_or_none(nearest, self.forward_frame))

    def _forward_frame(self) -> Int64Column:
        """The frame around the forward operator of each launch inside of a backward one, -1 elsewhere."""
        operators, forward = self.process.operators, self._forward_operators()
        return self.frames.innermost(
            _rows_or_none(operators.thread_id, forward), _rows_or_none(operators.begin_ns, forward)
        )

    def _forward_operators(self) -> Int64Column:
        operators, flows = self.process.operators, self.process.flows
        none = np.full(len(self.operator), _NONE, np.int64)
        if not len(flows.backward_ns) or not len(operators):
            return none
        forward = self._beginning_at(flows.forward_thread, flows.forward_ns)
        backward = self._beginning_at(flows.backward_thread, flows.backward_ns)
        link = np.full(len(operators), _NONE, np.int64)
        both = (forward >= 0) & (backward >= 0)
        link[backward[both]] = forward[both]
        nearest = self.operators.nearest(link >= 0)
        return _rows_or_none(link, _rows_or_none(nearest, self.operator))

    def _beginning_at(self, thread: Int64Column, time_ns: Int64Column) -> Int64Column:
        row = self.operators.innermost(thread, time_ns)
        return np.where((row >= 0) & (_rows_or_none(self.operators.begin_ns, row) == time_ns), row, _NONE)

    def _lines(self, numbers: _Numbers) -> Int64Column:
        """The innermost function that is not PyTorch's own, else the innermost with a file."""
        kinds = np.array([_kind(name) for name in self.names] or [0])
        frames = self.process.frames
        kind = kinds[frames.name] if len(frames) else np.zeros(0, np.int64)
        of_program = self._at_launch_or_forward(self.frames.nearest(kind == 2))
        other = self._at_launch_or_forward(self.frames.nearest(kind >= 1))
        frame = np.where(of_program >= 0, of_program, other)
        return _numbered(_rows_or_none(frames.name, frame), lambda i: numbers[self.names[i]])


def _kind(name: str) -> int:
    """2 for a function of the user or a library above PyTorch, 1 for one of PyTorch, 0 for all else."""
    match = _LINE.match(name) if "): " in name else None
    if match is None:
        return 0
    return 1 if _LIBRARY.search(match["file"]) or match["file"].startswith("<") else 2


def _rows_or_none(column: NDArray[np.generic], rows: Int64Column) -> Int64Column:
    """``column[rows]``, -1 where the row is."""
    if not len(column):
        return np.full(len(rows), _NONE, np.int64)
    return np.where(rows >= 0, column[rows], _NONE).astype(np.int64)


def _looked_up(keys: Int64Column, values: Int64Column, wanted: Int64Column) -> Int64Column:
    if not len(keys):
        return np.full(len(wanted), _NONE, np.int64)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], _NONE)


def _numbered(column: Int64Column, number: object) -> Int64Column:
    """Each distinct value but -1 by ``number``, which is asked once for each, in order of appearance."""
    distinct, first, inverse = np.unique(column, return_index=True, return_inverse=True)
    numbers = np.full(len(distinct), _NONE, np.int64)
    for i in np.argsort(first).tolist():
        if distinct[i] >= 0:
            numbers[i] = number(int(distinct[i]))  # type: ignore[operator]
    return numbers[inverse.reshape(-1)]
