"""``TorchPart`` of one run: sums over its launches, by everything that was around them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from rpl_core.model.device import CeilingOrigin
from rpl_core.values import frozen
from rpl_torch.analysis.collectives import collective_parts, find_idle, host_bound_stretches
from rpl_torch.analysis.launches import Launches, find_launches
from rpl_torch.analysis.work import NoWork, Work, operator_work
from rpl_torch.contracts import (
    TorchDecidingPart,
    TorchKernelPart,
    TorchModulePart,
    TorchOperatorPart,
    TorchPart,
    TorchRankPart,
    TorchShapePart,
    TorchTimePart,
    TorchUnmodelledPart,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.results.model import ExecutionGraph
    from rpl_core.model.device import DeviceModel
    from rpl_core.model.trace import Trace

    Int64Column = NDArray[np.int64]

#: Longest lists (chosen); what is left out has the least time.
MOST_OPERATORS = 256
MOST_MODULES = 512
MOST_LINES = 256
MOST_SHAPES = 256
MOST_KERNELS = 128
MOST_STRETCHES = 32
#: Of those who launched one kernel.
MOST_LAUNCHERS = 5


def torch_report(
    trace: Trace, run: int, graph: ExecutionGraph | None, device: DeviceModel | None
) -> TorchPart | None:
    """``None`` where the trace is none of torch.profiler, or nothing ran."""
    launches = find_launches(trace)
    if launches is None or not len(launches.begin_ns):
        return None
    return _Report(trace, launches, graph, device).part(run)


class _Report:
    """Columns over the work of one run: its time, and its time on the critical path."""

    def __init__(
        self, trace: Trace, launches: Launches, graph: ExecutionGraph | None, device: DeviceModel | None
    ) -> None:
        self.trace, self.launches, self.device = trace, launches, device
        self.time_ns = launches.duration_ns()
        self.total_ns = int(self.time_ns.sum())
        self.path = _on_path(launches, graph)
        self.path_ns = None if self.path is None else np.where(self.path, self.time_ns, 0)
        self.path_total_ns = None if self.path_ns is None else int(self.path_ns.sum())
        self.idle = find_idle(launches)
        self.works = [
            operator_work(name, launches.processes[number].inputs[inputs])
            for name, number, inputs in launches.given
        ]

    def part(self, run: int) -> TorchPart:
        launches = self.launches
        shapes = self._shapes()
        modelled = sum(shape.time_ns for shape in shapes if shape.reason is None)
        kernels = self._kernels()
        stretches = host_bound_stretches(self.trace, launches, self.idle)
        operators, modules = self._operators(), self._modules()
        lines = self._by(launches.line, launches.lines)
        processes = launches.processes
        return TorchPart(
            run=run,
            ranks=tuple(
                TorchRankPart(
                    p.rank, p.pid, p.world_size, len(p.operators), len(p.frames), len(p.flows.forward_ns)
                )
                for p in processes
            ),
            time_ns=self.total_ns,
            path_ns=self.path_total_ns,
            path_reason="the execution graph is not available" if self.path is None else None,
            shapes_reason=_missing([p.has_shapes for p in processes], "shapes", "record_shapes"),
            modules_reason=_missing(
                [p.has_modules for p in processes], "modules", "with_modules and with_stack"
            ),
            lines_reason=_missing([p.has_stacks for p in processes], "Python functions", "with_stack"),
            operators=operators[:MOST_OPERATORS],
            operators_left_out=max(0, len(operators) - MOST_OPERATORS),
            modules=modules[:MOST_MODULES],
            modules_left_out=max(0, len(modules) - MOST_MODULES),
            lines=lines[:MOST_LINES],
            lines_left_out=max(0, len(lines) - MOST_LINES),
            shapes=shapes[:MOST_SHAPES],
            shapes_left_out=max(0, len(shapes) - MOST_SHAPES),
            unmodelled=_unmodelled(shapes),
            modelled_share=modelled / self.total_ns if self.total_ns else 0.0,
            deciding=self._deciding(),
            kernels=kernels[:MOST_KERNELS],
            kernels_left_out=max(0, len(kernels) - MOST_KERNELS),
            idle_ns=self.idle.total_ns,
            host_bound=tuple(stretches[:MOST_STRETCHES]),
            host_bound_left_out=max(0, len(stretches) - MOST_STRETCHES),
            collectives=tuple(collective_parts(launches)),
            work_origin="modelled",
        )

    def _by(
        self, column: Int64Column, names: Sequence[str], rows: Int64Column | None = None
    ) -> tuple[TorchTimePart, ...]:
        """Time by what ``column`` points to, of all work or of ``rows``; the longest first."""
        if rows is None:
            rows = np.arange(len(column))
        whole = self.total_ns if len(rows) == len(column) else int(self.time_ns[rows].sum())
        sums = _sums(column[rows], len(names), self.time_ns[rows])
        counts = _sums(column[rows], len(names), np.ones(len(rows), np.int64))
        paths = None if self.path_ns is None else _sums(column[rows], len(names), self.path_ns[rows])
        parts = [
            TorchTimePart(
                None if i == len(names) else names[i],
                int(counts[i]),
                int(sums[i]),
                _share(int(sums[i]), whole),
                None if paths is None else int(paths[i]),
                self._path_share(None if paths is None else int(paths[i])),
            )
            for i in np.flatnonzero(counts).tolist()
        ]
        return tuple(sorted(parts, key=lambda part: (-part.time_ns, part.name or "")))

    def _path_share(self, path_ns: int | None) -> float | None:
        return None if path_ns is None or not self.path_total_ns else path_ns / self.path_total_ns

    def _operators(self) -> tuple[TorchOperatorPart, ...]:
        launches, names = self.launches, self.launches.operators
        calls, modelled, flops, moved = (defaultdict[int, int](int) for _ in range(4))
        for operator, kind, count in self._calls():
            calls[operator] += count
            work = self.works[kind]
            if isinstance(work, Work):
                modelled[operator] += count
                flops[operator] += count * work.flops
                moved[operator] += count * work.bytes
        number = {name: i for i, name in enumerate(names)}
        idle = [
            _sums(launches.operator, len(names), column)
            for column in (self.idle.host_ns, self.idle.queued_ns, self.idle.unknown_ns)
        ]
        parts = []
        for time in self._by(launches.operator, names):
            i = len(names) if time.name is None else number[time.name]
            part = TorchOperatorPart(
                name=time.name,
                calls=calls[i],
                launches=time.launches,
                time_ns=time.time_ns,
                share=time.share,
                path_ns=time.path_ns,
                path_share=time.path_share,
                idle_host_ns=int(idle[0][i]),
                idle_queued_ns=int(idle[1][i]),
                idle_unknown_ns=int(idle[2][i]),
                modelled_calls=modelled[i],
                flops=flops[i] if modelled[i] else None,
                bytes=moved[i] if modelled[i] else None,
            )
            parts.append(part)
        return tuple(parts)

    def _calls(self) -> list[tuple[int, int, int]]:
        """(operator, kind of call, number of calls) of everything that launched something."""
        launches = self.launches
        known = launches.call >= 0
        # One row for each call of an operator.
        _, first = np.unique(launches.call[known], return_index=True)
        pairs = np.stack([launches.operator[known][first], launches.inputs[known][first]], axis=1)
        distinct, counts = np.unique(pairs, axis=0, return_counts=True)
        return [(int(a), int(b), int(n)) for (a, b), n in zip(distinct, counts, strict=True)]

    def _modules(self) -> tuple[TorchModulePart, ...]:
        launches, names = self.launches, self.launches.modules
        inside: defaultdict[str | None, int] = defaultdict(int)
        by_module = self._by(launches.module, names)
        number = {name: i for i, name in enumerate(names)}
        for module in by_module:
            around = () if module.name is None else launches.ancestors[number[module.name]]
            for i in around:
                inside[names[i]] += module.time_ns
            if module.name is None:
                inside[None] = module.time_ns
        known = {module.name: module for module in by_module}
        nothing = 0 if self.path_ns is not None else None
        parts = []
        for name, ns in inside.items():
            own_part = known.get(name) or TorchTimePart(name, 0, 0, 0.0, nothing, self._path_share(nothing))
            part = TorchModulePart(
                name=name,
                launches=own_part.launches,
                time_ns=own_part.time_ns,
                share=own_part.share,
                path_ns=own_part.path_ns,
                path_share=own_part.path_share,
                inside_ns=ns,
                inside_share=_share(ns, self.total_ns),
            )
            parts.append(part)
        return tuple(sorted(parts, key=lambda part: (-part.inside_ns, -part.time_ns, part.name or "")))

    def _shapes(self) -> tuple[TorchShapePart, ...]:
        """By operator, shapes and types; calls that differ in nothing else are one entry."""
        launches, count = self.launches, len(self.launches.given)
        times = _sums(launches.inputs, count, self.time_ns)
        numbers = _sums(launches.inputs, count, np.ones(len(launches.inputs), np.int64))
        paths = None if self.path_ns is None else _sums(launches.inputs, count, self.path_ns)
        calls = {kind: n for _, kind, n in self._calls()}
        groups: defaultdict[tuple[str, str, str, Work | NoWork], list[int]] = defaultdict(list)
        for kind, (name, number, place) in enumerate(launches.given):
            inputs = launches.processes[number].inputs[place]
            groups[name, _compact(inputs.dims), _compact(inputs.types), self.works[kind]].append(kind)
        parts = []
        for (name, dims, types, work), kinds in groups.items():
            measured = _Measured(
                calls=sum(calls[kind] for kind in kinds),
                launches=int(numbers[kinds].sum()),
                time_ns=int(times[kinds].sum()),
                path_ns=None if paths is None else int(paths[kinds].sum()),
            )
            parts.append(self._shape(name, (dims, types), work, measured))
        return tuple(sorted(parts, key=lambda part: (-part.time_ns, part.operator, part.dims, part.types)))

    def _shape(
        self, name: str, given: tuple[str, str], work: Work | NoWork, measured: _Measured
    ) -> TorchShapePart:
        rates = _Rates.of(work, measured, self.device)
        known = isinstance(work, Work)
        return TorchShapePart(
            operator=name,
            dims=given[0],
            types=given[1],
            calls=measured.calls,
            launches=measured.launches,
            time_ns=measured.time_ns,
            share=_share(measured.time_ns, self.total_ns),
            path_ns=measured.path_ns,
            formula=work.formula if isinstance(work, Work) else None,
            reason=None if isinstance(work, Work) else work.reason,
            flops=work.flops if isinstance(work, Work) else None,
            bytes=work.bytes if isinstance(work, Work) else None,
            intensity=work.flops / work.bytes if isinstance(work, Work) and work.bytes else None,
            data_type=work.data_type if isinstance(work, Work) else None,
            gflops=rates.gflops,
            gbps=rates.gbps,
            compute_share=rates.compute_share,
            memory_share=rates.memory_share,
            bound=rates.bound,
            above_peak=max(rates.compute_share or 0.0, rates.memory_share or 0.0) > 1.0,
            ceiling_reason=rates.reason if known else None,
        )

    def _kernels(self) -> tuple[TorchKernelPart, ...]:
        dispatches, launches = self.trace.dispatches, self.launches
        names = [kernel.name for kernel in self.trace.kernels]
        order: dict[str, list[int]] = {}
        for number, name in enumerate(names):
            order.setdefault(name, []).append(number)
        parts = []
        for name, numbers in order.items():
            rows = np.flatnonzero(np.isin(dispatches.kernel, numbers))
            if rows.size:
                parts.append(
                    TorchKernelPart(
                        kernel=name,
                        time_ns=int(self.time_ns[rows].sum()),
                        operators=self._by(launches.operator, launches.operators, rows)[:MOST_LAUNCHERS],
                        modules=self._by(launches.module, launches.modules, rows)[:MOST_LAUNCHERS],
                        lines=self._by(launches.line, launches.lines, rows)[:MOST_LAUNCHERS],
                    )
                )
        return tuple(sorted(parts, key=lambda part: (-part.time_ns, part.kernel)))

    def _deciding(self) -> TorchDecidingPart | None:
        """The kernel with the most time on the path, and the operator that launched most of that."""
        if self.path is None:
            return None
        launches, count = self.launches, self.launches.dispatches
        rows = np.flatnonzero(self.path[:count])
        rows = rows[self.trace.dispatches.kernel[rows] >= 0]
        if not rows.size:
            return None
        # Numbers, not texts: an array of names has the width of the longest one in every row.
        names = sorted({kernel.name for kernel in self.trace.kernels})
        places = {name: i for i, name in enumerate(names)}
        table = np.array([places[kernel.name] for kernel in self.trace.kernels])
        symbol = table[self.trace.dispatches.kernel[rows]]
        place = int(np.argmax(_sums(symbol, len(names), self.time_ns[rows])[:-1]))
        deciding = rows[symbol == place]
        operator = self._by(launches.operator, launches.operators, deciding)[0]
        of_it = deciding[
            launches.operator[deciding]
            == (-1 if operator.name is None else launches.operators.index(operator.name))
        ]
        kind = int(np.bincount(launches.inputs[of_it] + 1, self.time_ns[of_it]).argmax()) - 1
        dims = ""
        if kind >= 0:
            _, number, inputs = launches.given[kind]
            dims = _compact(launches.processes[number].inputs[inputs].dims)
        return TorchDecidingPart(
            kernel=names[place],
            path_ns=int(self.time_ns[deciding].sum()),
            operator=operator.name,
            operator_ns=operator.time_ns,
            module=self._by(launches.module, launches.modules, of_it)[0].name,
            line=self._by(launches.line, launches.lines, of_it)[0].name,
            dims=dims or None,
        )


@frozen
class _Measured:
    calls: int
    launches: int
    time_ns: int
    path_ns: int | None


@frozen
class _Rates:
    """Modelled work over measured time, beside the data sheet of the device."""

    gflops: float | None = None
    gbps: float | None = None
    compute_share: float | None = None
    memory_share: float | None = None
    reason: str | None = None

    @property
    def bound(self) -> Literal["memory", "compute"] | None:
        if self.compute_share is None and self.memory_share is None:
            return None
        return "compute" if (self.compute_share or 0.0) > (self.memory_share or 0.0) else "memory"

    @classmethod
    def of(cls, work: Work | NoWork, measured: _Measured, device: DeviceModel | None) -> _Rates:
        if not isinstance(work, Work) or measured.time_ns <= 0:
            return cls()
        gflops = work.flops * measured.calls / measured.time_ns
        gbps = work.bytes * measured.calls / measured.time_ns
        if device is None:
            return cls(gflops, gbps, reason="no device plugin knows the GPU, so its peaks are unknown")
        compute = None
        if work.data_type is not None:
            compute = device.compute_ceiling(work.data_type, work.pipe, CeilingOrigin.SPEC)
        memory = device.memory_ceiling("hbm", CeilingOrigin.SPEC)
        reason = None
        if compute is None and work.flops:
            kind = f"{work.pipe.value} rate of {work.data_type}" if work.data_type else "rate of integers"
            reason = f"the data sheet has no {kind}"
        return cls(
            gflops,
            gbps,
            None if compute is None else gflops / compute.peak_gflops,
            None if memory is None else gbps / memory.peak_gbps,
            reason,
        )


def _on_path(launches: Launches, graph: ExecutionGraph | None) -> NDArray[np.bool_] | None:
    if graph is None or graph.on_path is None or len(graph.on_path.dispatches) != launches.dispatches:
        return None
    copies = len(launches.begin_ns) - launches.dispatches
    on_path = graph.on_path.copies if len(graph.on_path.copies) == copies else np.zeros(copies, np.bool_)
    return np.concatenate([graph.on_path.dispatches, on_path])


def _sums(column: Int64Column, size: int, values: Int64Column) -> Int64Column:
    """Sums of whole numbers by index; the last one is of what is not recorded."""
    sums = np.zeros(size + 1, np.int64)
    np.add.at(sums, np.where(column < 0, size, column), values)
    return sums


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _compact(text: bytes) -> str:
    """JSON as everybody writes it, whatever tool laid out the file."""
    return msgspec.json.encode(msgspec.json.decode(text)).decode() if text else ""


def _missing(recorded: Sequence[bool], what: str, how: str) -> str | None:
    if all(recorded):
        return None
    who = "the profiler" if not any(recorded) else f"the profiler of {recorded.count(False)} ranks"
    return f"{who} recorded no {what} (set {how} to True)"


def _unmodelled(shapes: Sequence[TorchShapePart]) -> tuple[TorchUnmodelledPart, ...]:
    calls: defaultdict[tuple[str, str], int] = defaultdict(int)
    times: defaultdict[tuple[str, str], int] = defaultdict(int)
    for shape in shapes:
        if shape.reason is not None:
            calls[shape.operator, shape.reason] += shape.calls
            times[shape.operator, shape.reason] += shape.time_ns
    parts = [TorchUnmodelledPart(name, calls[name, why], times[name, why], why) for name, why in calls]
    return tuple(sorted(parts, key=lambda part: (-part.time_ns, part.operator, part.reason)))
