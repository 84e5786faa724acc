"""Files of other profilers and viewers: named and refused with what to do, so that nobody has to guess.

Databases are told apart by ``sqlite/identity``, tables by the readers of CSV. Sources of the signs:
docs/reference/formats.md, 7.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, ForeignFileError
from rpl_core.interfaces.reader import InputSet, Reader
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import NoReturn

__all__ = ["ForeignReader"]

_HEAD_BYTES = 1 << 16
_RECORD = "record the program with `rpl profile -- COMMAND`, or with `rocprofv3 --kernel-trace`"
_ON_ROCM = (
    "record on the AMD GPU: `rpl profile -- COMMAND` (of a PyTorch program a torch.profiler trace is read)"
)


@frozen
class _Format:
    name: str
    refusal: str
    next_step: str = _RECORD


_PERFETTO = _Format(
    "Perfetto trace",
    "it is a Perfetto trace, which is made for a viewer and lacks what an analysis needs",
    "give rpl the recording that it was made from, or record with `rocprofv3 --kernel-trace"
    " --output-format rocpd`",
)
_XPLANE = _Format("JAX profile", "it is a profile of JAX or TensorFlow (XPlane), which rpl does not read")
_BY_SUFFIX = {
    **dict.fromkeys((".pftrace", ".perfetto-trace", ".perfetto"), _PERFETTO),
    **dict.fromkeys(
        (".nsys-rep", ".qdrep", ".qdstrm"),
        _Format("Nsight Systems report", "it is a report of NVIDIA's Nsight Systems", _ON_ROCM),
    ),
    **dict.fromkeys(
        (".ncu-rep", ".nsight-cuprof-report"),
        _Format("Nsight Compute report", "it is a report of NVIDIA's Nsight Compute", _ON_ROCM),
    ),
    ".xplane.pb": _XPLANE,
}
_ROCPROF_JSON = _Format(
    "rocprof v1 JSON",
    "it is a JSON trace of rocprof v1 or v2, which is made for a viewer",
    "give rpl the results.csv beside it, or record with rocprofv3",
)
_JAX_JSON = _Format("JAX trace", "it is a trace of JAX or TensorFlow for a viewer, which rpl does not read")
_CHROME = _Format("Chrome trace", "it is a Chrome trace of another tool than torch.profiler")


class ForeignReader(Reader):
    """Refuses formats that it knows and nobody reads."""

    name = "foreign"
    summary = "names files of other profilers and viewers, and says what to do instead"
    priority = -100  # whoever can read a file comes first

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        found = ((path, _format_of(path)) for path in sorted(files))
        return [
            InputSet(self.name, known.name, (path,), known.refusal, known.next_step)
            for path, known in found
            if known is not None
        ]

    def read(self, inputs: InputSet) -> NoReturn:
        raise ForeignFileError(f"{inputs.paths[0]}: {inputs.refusal}", next_step=inputs.next_step)


def _format_of(path: Path) -> _Format | None:
    name = path.name.lower()
    plain = name.removesuffix(".gz")
    for suffix, known in _BY_SUFFIX.items():
        if plain.endswith(suffix):
            return known
    if not plain.endswith(".json"):
        return None
    head = b"".join(_head(path).split())
    if not head.startswith((b"{", b"[")):
        return None
    if b'"schemaVersion"' in head or b'"deviceProperties"' in head:
        return None  # torch.profiler: read by a reader of its own, where that is installed
    if head.startswith(b'{"traceEvents":[{}') and (b"API" in head or b'"BeginNs"' in head):
        return _ROCPROF_JSON
    if b'"highres-ticks"' in head:
        return _JAX_JSON
    return _CHROME if b'"traceEvents"' in head or (b'"ph":"' in head and b'"ts":' in head) else None


def _head(path: Path) -> bytes:
    """The first bytes, unpacked; nothing of a file that can't be read."""
    from rpl_rocprofv3.readers.gzip_limits import unpacked_head

    try:
        if path.suffix.lower() == ".gz":
            return unpacked_head(path, _HEAD_BYTES)
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except (OSError, EOFError, zlib.error, BadDataError):
        return b""
