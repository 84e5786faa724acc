"""Streams the sections of a ``*_results.json`` file of rocprofv3, so that memory stays bounded.

Layout: one object ``rocprofiler-sdk-tool`` with one entry per process, which holds ``metadata``,
``agents``, ``counters``, ``strings``, ``code_objects``, ``kernel_symbols``, ``callback_records`` and
``buffer_records`` (ROCm/rocprofiler-sdk, output of its tool library, 0.5 to 1.x).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rpl_core.errors import BadDataError
from rpl_core.model.trace import NOT_RECORDED
from rpl_rocprofv3.readers.gzip_limits import GZIP_ERRORS, BoundedGzip, unpacked_head

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

__all__ = ["entries", "is_results_json", "number_at", "number_of", "text_at", "value_at"]

_ROOT = "rocprofiler-sdk-tool"
_HEAD_BYTES = 4096
_BUFFER_BYTES = 1 << 18
_INTEGER_LIMIT = 1 << 63


def is_results_json(path: Path) -> bool:
    """Whether the file begins like one. Reads its first bytes, never raises."""
    if not path.name.endswith((".json", ".json.gz")):
        return False
    try:
        if path.suffix == ".gz":
            head = unpacked_head(path, _HEAD_BYTES)
        else:
            with path.open("rb") as file:
                head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return head.lstrip()[:1] == b"{" and f'"{_ROOT}"'.encode() in head


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO | BoundedGzip]:
    import ijson

    try:
        with BoundedGzip(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield file
    except (ijson.JSONError, UnicodeDecodeError, ValueError, *GZIP_ERRORS) as error:
        raise BadDataError(
            f"{path} can't be read as JSON: {error}",
            cause="the file was cut off, or the profiled program ended while it was written",
            next_step="record again, with `--output-format rocpd` where it exists",
        ) from error


def entries(path: Path, section: str) -> Iterator[Any]:
    """The values at ``section`` (such as ``buffer_records.hip_api.item``) of every process, one by one."""
    import ijson

    with _opened(path) as file:
        # Without use_float, integers of any size are read; unsigned 64-bit addresses do not fit otherwise.
        yield from ijson.items(file, f"{_ROOT}.item.{section}", buf_size=_BUFFER_BYTES)


def value_at(record: Any, *keys: str) -> Any:
    """The value below nested keys, None where there is none."""
    for key in keys:
        if not isinstance(record, dict):
            return None
        record = record.get(key)
    return record


def number_of(value: Any) -> int:
    """``value`` as a 64-bit integer, -1 where it is none."""
    if isinstance(value, int) and not isinstance(value, bool) and -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
        return value
    return NOT_RECORDED


def number_at(record: Any, *keys: str) -> int:
    return number_of(value_at(record, *keys))


def text_at(record: Any, *keys: str) -> str | None:
    value = value_at(record, *keys)
    return value if isinstance(value, str) and value else None
