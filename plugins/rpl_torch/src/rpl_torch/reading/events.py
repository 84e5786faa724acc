"""The events of a torch.profiler trace, decoded in bounded pieces of the file.

Kineto writes one JSON object whose ``traceEvents`` is by far its largest member. The file is read window by
window; the window is cut behind the last event that it holds whole and decoded at once by msgspec into
records of the keys that are used. A cut is right exactly if what stands before it decodes as a list: JSON
that is complete at one place of a text is so however the text goes on. Only where that fails, near the end
of the array or with objects inside of events, are brackets counted.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from rpl_core.errors import BadDataError
from rpl_core.files.bounded import open_regular
from rpl_rocprofv3.readers.gzip_limits import GZIP_ERRORS, BoundedGzip, refuse_hollow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

__all__ = ["Device", "Distributed", "Event", "EventFile", "Header", "unreadable"]

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
            for found in _EVENTS.finditer(self._window, tried):
                head = self._window[: found.start()]
                tried = found.end()
                if _is_object(head + b'"":0}'):
                    self._window = self._window[found.end() :]
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
