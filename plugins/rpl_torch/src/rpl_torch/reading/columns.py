"""Columns from the events of a trace, one category after the other.

Texts that repeat (names, shapes, grids) are kept once and their numbers in the columns, so that a trace of
gigabytes needs some 40 bytes for each event.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_torch.model import CollectiveCall, Inputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_torch.reading.events import Args, Event

__all__ = ["RUNTIME", "WORK", "EventColumns", "Table"]

#: Work on the GPU.
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
#: Calls of the runtime and the driver.
RUNTIME = ("cuda_runtime", "cuda_driver", "hip_runtime")
#: Operators whose work depends on the values of scalars: strides, groups, whether a mask is causal.
_NEED_SCALARS = (
    "conv",
    "attention",
    "mha",
    "pool",
    "embedding",
    "sum",
    "mean",
    "prod",
    "all",
    "any",
    "amax",
    "amin",
    "arg",
    "norm",
    "scaled",
)
#: Known, and nothing that is analysed: projections of ranges to the GPU, allocations, flows of launches
#: (correlation ids say the same), marks.
_PASSED_OVER = frozenset(
    {"ac2g", "gpu_user_annotation", "cpu_instant_event", "Trace", "", "fwdbwd", "overhead", "cuda_sync"}
)
#: What PyTorch up to 1.10 called the same.
_OLD_NAMES = {
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "Runtime": "cuda_runtime",
    "Operator": "cpu_op",
}
_NS = 1000.0
#: Where doubles no longer tell nanoseconds apart (2**43 us are 101 days).
EXACT_US = float(1 << 43)


class Table:
    """Columns of one category, collected piece by piece."""

    def __init__(self, **kinds: type) -> None:
        self._kinds = kinds
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in kinds}

    def add(self, **columns: Iterable[Any]) -> None:
        """One piece. Raises ``ValueError`` for values that the column can't hold."""
        for name, values in columns.items():
            try:
                part: NDArray[Any] = np.array(values, self._kinds[name])
            except (OverflowError, TypeError, ValueError) as error:
                raise ValueError(f"{name}: {error}") from None
            self._parts[name].append(part)

    def taken(self) -> dict[str, NDArray[Any]]:
        """The columns; what they were made of is let go."""
        return {
            name: np.concatenate([np.empty(0, kind), *self._take(name)]) for name, kind in self._kinds.items()
        }

    def _take(self, name: str) -> list[NDArray[Any]]:
        parts = self._parts[name]
        self._parts[name] = []
        return parts


class _Texts:
    """Number of each text, in order of appearance."""

    def __init__(self) -> None:
        self.numbers: defaultdict[Any, int] = defaultdict(self._next)

    def _next(self) -> int:
        return len(self.numbers)


class EventColumns:
    """Everything that is used, as columns. Times are ns after the base of the trace."""

    def __init__(self) -> None:
        self.names = _Texts()
        self.inputs = _Texts()
        self.shapes = _Texts()
        self.kinds = _Texts()
        self.inputs.numbers[Inputs()]  # number 0: nothing recorded
        times = {"begin_ns": np.int64, "end_ns": np.int64}
        self.work = Table(
            name=np.int32,
            category=np.int8,
            kind=np.int32,
            shape=np.int32,
            device=np.int64,
            stream=np.int64,
            correlation=np.int64,
            external=np.int64,
            size_bytes=np.int64,
            shared_bytes=np.int64,
            **times,
        )
        self.runtime = Table(name=np.int32, thread=np.int64, correlation=np.int64, external=np.int64, **times)
        self.operators = Table(
            name=np.int32,
            inputs=np.int32,
            thread=np.int64,
            external=np.int64,
            is_range=np.bool_,
            **times,
        )
        self.frames = Table(name=np.int32, thread=np.int64, **times)
        self.flows = Table(id=np.int64, is_start=np.bool_, thread=np.int64, begin_ns=np.int64)
        self.collectives: list[CollectiveCall] = []
        #: By external id: what operators say that launch collectives, for kernels that say nothing.
        self.announced: dict[int, CollectiveCall] = {}
        self.pids: Counter[int] = Counter()
        self.passed_over: Counter[str] = Counter()
        self.latest_us = 0.0
        self.rounded = False
        self.by_roctracer = False
        self._needs_scalars: dict[str, bool] = {}
        self._takers: dict[str, Callable[[list[Event], str], None]] = {
            **dict.fromkeys(WORK, self._take_work),
            **dict.fromkeys(RUNTIME, self._take_runtime),
            **dict.fromkeys(("cpu_op", "user_annotation"), self._take_operators),
            "python_function": self._take_frames,
            "fwdbwd": self._take_flows,
        }

    def add(self, events: list[Event]) -> None:
        """A piece of the trace. Raises ``ValueError`` for what no trace holds."""
        by_category: defaultdict[str, list[Event]] = defaultdict(list)
        for event in events:
            by_category[event.cat].append(event)
        for recorded, found in by_category.items():
            category = _OLD_NAMES.get(recorded, recorded)
            take = self._takers.get(category)
            if take is not None:
                take(found, category)
            elif category not in _PASSED_OVER:
                self.passed_over[category] += len(found)

    def _take_frames(self, events: list[Event], _: str) -> None:
        number = self.names.numbers
        self.frames.add(
            name=[number[event.name] for event in events],
            thread=[event.tid for event in events],
            **self._times(events),
        )

    def _take_operators(self, events: list[Event], category: str) -> None:
        number, of_inputs = self.names.numbers, self._inputs_of
        args = _args(events)
        self.operators.add(
            name=[number[event.name] for event in events],
            inputs=[
                of_inputs(e.name, a) if a.dims or a.types else 0 for e, a in zip(events, args, strict=True)
            ],
            thread=[event.tid for event in events],
            external=_externals(args),
            is_range=[category == "user_annotation"] * len(events),
            **self._times(events),
        )

        for event, a in zip(events, args, strict=True):
            if a.collective is not None and a.external is not None:
                self.announced[a.external] = _collective(event.name, a)

    def _inputs_of(self, name: str, args: Args) -> int:
        needs = self._needs_scalars.get(name)
        if needs is None:
            lower = name.lower()
            needs = self._needs_scalars[name] = any(word in lower for word in _NEED_SCALARS)
        concrete = bytes(args.concrete) if needs else b""
        return self.inputs.numbers[Inputs(bytes(args.dims), bytes(args.types), concrete)]

    def _take_runtime(self, events: list[Event], _: str) -> None:
        number = self.names.numbers
        args = _args(events)
        self.by_roctracer |= any(a.cid is not None for a in args)
        self.pids.update(event.pid for event in events if isinstance(event.pid, int))
        self.runtime.add(
            name=[number[event.name] for event in events],
            thread=[event.tid for event in events],
            correlation=_known(a.correlation for a in args),
            external=_externals(args),
            **self._times(events),
        )

    def _take_work(self, events: list[Event], category: str) -> None:
        number, kind, shape = self.names.numbers, self.kinds.numbers, self.shapes.numbers
        args = _args(events)
        self.work.add(
            name=[number[event.name] for event in events],
            category=[WORK.index(category)] * len(events),
            kind=[kind[str(a.kind)] for a in args],
            shape=[shape[bytes(a.grid), bytes(a.block), a.shared_memory] for a in args],
            # Older traces have device and stream as process and thread of the event only.
            device=[e.pid if a.device is None else a.device for e, a in zip(events, args, strict=True)],
            stream=[e.tid if a.stream is None else a.stream for e, a in zip(events, args, strict=True)],
            correlation=_known(a.correlation for a in args),
            external=_externals(args),
            size_bytes=_known(a.bytes for a in args),
            shared_bytes=_known(a.shared_memory for a in args),
            **self._times(events),
        )
        self.collectives += [
            _collective(event.name, a)
            for event, a in zip(events, args, strict=True)
            if a.collective is not None and a.correlation is not None
        ]

    def _take_flows(self, events: list[Event], _: str) -> None:
        events = [event for event in events if isinstance(event.id, int)]
        if not events:
            return
        self.flows.add(
            id=[event.id for event in events],
            is_start=[event.ph == "s" for event in events],
            thread=[event.tid for event in events],
            begin_ns=self._times(events)["begin_ns"],
        )

    def _times(self, events: list[Event]) -> dict[str, NDArray[np.int64]]:
        """Begin and end in whole ns, as exact as the text was: it has three digits behind the point."""
        begin = np.array([event.ts for event in events], np.float64)
        length = np.array([event.dur for event in events], np.float64)
        latest = max(float(begin.max()), -float(begin.min()), float(length.max()))
        self.latest_us = max(self.latest_us, latest)
        if latest >= EXACT_US:
            if latest >= 9e15:
                raise ValueError(f"ts: a time of {latest:.0f} us lies more than 280 years away")
            self.rounded |= bool((begin % 1.0).any())
        begin_ns = np.rint(begin * _NS).astype(np.int64)
        return {"begin_ns": begin_ns, "end_ns": begin_ns + np.rint(length * _NS).astype(np.int64)}


def _args(events: list[Event]) -> list[Args]:
    from rpl_torch.reading.events import Args

    none = Args()
    return [event.args or none for event in events]


def _externals(args: list[Args]) -> list[int]:
    return _known(a.external_before_2 if a.external is None else a.external for a in args)


def _known(values: Iterable[Any]) -> list[Any]:
    return [-1 if value is None else value for value in values]


def _collective(name: str, args: Args) -> CollectiveCall:
    ranks = tuple(int(r) for r in (args.group_ranks or "").strip("[] ").split(",") if r.strip().isdigit())
    return CollectiveCall(
        correlation_id=args.correlation if args.correlation is not None else -1,
        operation=args.collective or name,
        group=args.group_name,
        ranks=ranks,
        group_size=args.group_size,
        in_elements=args.in_elements,
        out_elements=args.out_elements,
        dtype=args.dtype,
        number=args.number,
    )
