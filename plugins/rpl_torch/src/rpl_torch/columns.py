"""The events of a trace, read in one pass, as columns: one category after the other.

Texts that repeat (names, shapes, grids) are kept once and their numbers in the columns, so that a trace of
gigabytes needs some 40 bytes for each event.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from rpl_core.errors import BadDataError
from rpl_core.files import open_regular
from rpl_rocprofv3.readers.gzip_limits import GZIP_ERRORS, BoundedGzip, refuse_hollow
from rpl_torch.model import CollectiveCall, Inputs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

    from numpy.typing import NDArray

#: What is decoded at once: it stays in the caches of a CPU (chosen by benchmarks/read_torch.py).
_WINDOW_BYTES = 1 << 18
#: Of one event and of what stands around the events; real ones have 100 kB at most.
_LARGEST_VALUE = 64 << 20
#: No plain file is longer; a longer one would take hours.
_LARGEST_FILE = 64 << 30
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
#: A text that the window cuts off goes to its end: what is in it is no structure.
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)
_SPACE = b" \t\r\n"


class Args(msgspec.Struct, gc=False):
    """The keys of ``args`` that are used; which of them an event has depends on its category."""

    external: int | None = msgspec.field(name="External id", default=None)
    external_before_2: int | None = msgspec.field(name="external id", default=None)  # PyTorch 1, of work
    correlation: int | None = None
    device: int | None = None
    stream: int | str | None = None  # text, a handle, in calls of ROCm 6.2 and before
    cid: int | None = None  # of calls that roctracer recorded
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=msgspec.Raw(b""))
    types: msgspec.Raw = msgspec.field(name="Input type", default=msgspec.Raw(b""))
    concrete: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=msgspec.Raw(b""))
    grid: msgspec.Raw = msgspec.Raw(b"")
    block: msgspec.Raw = msgspec.Raw(b"")
    shared_memory: int | None = msgspec.field(name="shared memory", default=None)
    bytes: int | str | None = None  # text in runtime calls
    kind: str | int | None = None
    collective: str | None = msgspec.field(name="Collective name", default=None)
    in_elements: int | None = msgspec.field(name="In msg nelems", default=None)
    out_elements: int | None = msgspec.field(name="Out msg nelems", default=None)
    group_size: int | None = msgspec.field(name="Group size", default=None)
    group_name: str | None = msgspec.field(name="Process Group Name", default=None)
    group_ranks: str | None = msgspec.field(name="Process Group Ranks", default=None)
    dtype: str | None = None
    number: int | None = msgspec.field(name="Seq", default=None)


class Event(msgspec.Struct, gc=False):
    """One event; times in microseconds. ``pid`` of work on a GPU is the device."""

    ph: str
    cat: str = ""
    name: str = ""
    pid: int | str = -1
    tid: int | str = -1
    ts: float = -1.0
    dur: float = 0.0
    id: int | str | None = None
    args: Args | None = None


class Device(msgspec.Struct):
    """``deviceProperties``: what the runtime says of a GPU."""

    id: int
    name: str = ""
    memory_bytes: int | None = msgspec.field(name="totalGlobalMem", default=None)
    major: int | None = msgspec.field(name="computeMajor", default=None)
    minor: int | None = msgspec.field(name="computeMinor", default=None)
    warp_size: int | None = msgspec.field(name="warpSize", default=None)
    units: int | None = msgspec.field(name="numSms", default=None)
    shared_bytes: int | None = msgspec.field(name="maxSharedMemoryPerMultiProcessor", default=None)


class Distributed(msgspec.Struct):
    """``distributedInfo`` of a rank."""

    rank: int | None = None
    world_size: int | None = None
    backend: str | None = None


class Header(msgspec.Struct):
    """What stands beside the events. ``events`` is there only where a second list of them is."""

    base_ns: int = msgspec.field(name="baseTimeNanoseconds", default=0)
    devices: tuple[Device, ...] = msgspec.field(name="deviceProperties", default=())
    distributed: Distributed | None = msgspec.field(name="distributedInfo", default=None)
    trace_id: str | None = None
    hip: int | str | None = msgspec.field(name="hip_runtime_version", default=None)
    roctracer: float | str | None = msgspec.field(name="roctracer_version", default=None)
    cupti: int | str | None = msgspec.field(name="cupti_version", default=None)
    origin: str | None = msgspec.field(name="rpl_origin", default=None)
    events: msgspec.Raw = msgspec.field(name="traceEvents", default=msgspec.Raw(b""))


_events_of = msgspec.json.Decoder(list[Event]).decode
_header_of = msgspec.json.Decoder(Header).decode


class EventFile:
    """The events of ``path`` in pieces, once; afterwards ``header`` holds the rest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header = Header()
        self._window = b""
        self._ended = False

    def pieces(self) -> Iterator[list[Event]]:
        """All events in file order. Raises ``BadDataError`` for whatever is no such trace."""
        with _refusing(self.path), _opened(self.path) as file:
            head = self._before_events(file)
            while True:
                cut, closes = self._cut(file)
                if closes:
                    break
                yield cut
            yield cut
            self.header = self._around(head, file)

    def _more(self, file: IO[bytes]) -> bool:
        """Read on; false at the end of the file."""
        parts, size = [self._window], 0
        while size < _WINDOW_BYTES and not self._ended:
            part = file.read(_WINDOW_BYTES - size)
            self._ended = not part
            parts.append(part)
            size += len(part)
        self._window = b"".join(parts)
        return size > 0

    def _before_events(self, file: IO[bytes]) -> bytes:
        """The members before the events, as the text of an object that goes on."""
        tried = 0
        while True:
            for match in _EVENTS.finditer(self._window, tried):
                head = self._window[: match.start()]
                tried = match.end()
                if _is_object(head + b'"":0}'):
                    self._window = self._window[match.end() :]
                    return head
            if len(self._window) > _LARGEST_VALUE:
                raise ValueError(f"no traceEvents within {_LARGEST_VALUE >> 20} MiB")
            if not self._more(file):
                raise ValueError("it ends before traceEvents" if self._window.strip() else "it is empty")

    def _cut(self, file: IO[bytes]) -> tuple[list[Event], bool]:
        """The next events, and whether the array ends behind them."""
        enough = 0
        while True:
            if len(self._window) <= max(enough, _WINDOW_BYTES // 2):
                self._more(file)
            window = self._window
            cut = _last_border(window)
            if cut > 0:
                try:
                    events = _events_of(b"".join((b"[", window[:cut], b"]")))
                except msgspec.ValidationError:
                    raise
                except msgspec.DecodeError:
                    pass  # the end of the array, or the border of something inside an event
                else:
                    self._window = window[cut + 1 :]
                    return events, False
            cut, closes = _counted_border(window)
            if cut >= 0:
                events = _events_of(b"".join((b"[", window[:cut], b"]")))
                self._window = window[cut + 1 :]
                return events, closes
            if self._ended:
                raise EOFError("it was cut off")
            if len(window) > _LARGEST_VALUE:
                raise ValueError(f"an event has more than {_LARGEST_VALUE >> 20} MiB")
            enough = len(window)

    def _around(self, head: bytes, file: IO[bytes]) -> Header:
        """Everything but the events, which are one list by now."""
        while self._more(file):
            if len(self._window) > _LARGEST_VALUE:
                raise ValueError(f"more than {_LARGEST_VALUE >> 20} MiB stand behind the events")
        header = _header_of(b"".join((head, b'"":0', self._window)))
        if header.events:
            raise ValueError("it holds traceEvents twice")
        return header


def _is_object(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return False
    return True


def _last_border(window: bytes) -> int:
    """The comma behind the last ``}`` that a ``{`` follows; 0 where there is none."""
    end = len(window)
    while (comma := window.rfind(b"},", 0, end)) >= 0:
        following = window[comma + 2 : comma + 256].lstrip(_SPACE)
        if following[:1] == b"{":
            return comma + 1
        end = comma
    return 0


def _counted_border(window: bytes) -> tuple[int, bool]:
    """The last comma between events, or the bracket that ends them (then true); -1 where there is neither."""
    depth, border = 0, -1
    for token in _STRUCTURE.finditer(window):
        byte = window[token.start()]
        if byte in b"{[":
            depth += 1
        elif byte in b"}]":
            if depth == 0:
                return token.start(), True
            depth -= 1
        elif byte == 0x2C and depth == 0:
            border = token.start()
    return border, False


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if path.suffix == ".gz":
        with BoundedGzip(path) as packed:
            yield packed  # type: ignore[misc]  # reads bytes as every binary file does
        return
    refuse_hollow(path)
    with open_regular(path, _LARGEST_FILE) as plain:
        yield plain


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise unreadable(path, "it is nested too deeply") from None
    except (ValueError, *GZIP_ERRORS) as error:  # msgspec's errors are ValueErrors
        raise unreadable(path, error) from error


def unreadable(path: Path, reason: object) -> BadDataError:
    """What is said of a file that claims to be a trace and isn't one that can be used."""
    return BadDataError(
        f"{path} can't be read as a torch.profiler trace: {reason}",
        cause="the file was cut off, is damaged, or was edited",
        next_step="export it again with prof.export_chrome_trace()",
    )


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
        for recorded, of_category in by_category.items():
            category = _OLD_NAMES.get(recorded, recorded)
            take = self._takers.get(category)
            if take is not None:
                take(of_category, category)
            elif category not in _PASSED_OVER:
                self.passed_over[category] += len(of_category)

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
