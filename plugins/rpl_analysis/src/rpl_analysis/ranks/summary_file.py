"""Summaries of one recording as a file beside the answer, so that a second analysis reads nothing else.

An npz of two parts: ``about`` (JSON) and ``columns`` (int64, all columns of all ranks one after the other).
It names the recording's files with size, time of change and SHA-256. Files of the same size and time are
taken for the same; where the time differs the hash decides, and another one rejects the summary.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_analysis.ranks.digest import EXACT_VALUES, KernelTimes
from rpl_analysis.ranks.summary import Collective, Operations, RankIdentity, RankSummary, Strip
from rpl_core.errors import BadDataError, MissingError
from rpl_core.files import parse_json, read_regular, sha256_of, write_atomic
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64Column = NDArray[np.int64]

__all__ = ["RecordedFile", "SavedSummary", "is_of", "load_summary", "save_summary"]

#: Rises when a summary of before says something else.
VERSION = 1
#: 64 ranks of a recording with a hundred thousand collectives each (chosen).
MOST_BYTES = 512 << 20
_MOST_RANKS = 4096
_SCALARS = (
    *("hostname", "product", "architecture", "origin", "launches", "kernel_ns", "begin_ns", "end_ns"),
    *("busy_ns", "kernels_busy_ns", "computing_ns", "communicating_ns", "critical_path_ns"),
)
_TIMES = tuple(field.name for field in attrs.fields(KernelTimes) if field.name != "names")
_OPERATIONS = tuple(field.name for field in attrs.fields(Operations))
_PER_KERNEL = ("count", "total_ns", "least_ns", "most_ns")


@frozen
class RecordedFile:
    """A file of the recording as it was when it was read. ``path`` is where, absolute."""

    path: str
    bytes: int
    changed_ns: int
    sha256: str


@frozen(eq=False)
class SavedSummary:
    """The ranks of one recording, and its files."""

    files: tuple[RecordedFile, ...]
    ranks: tuple[RankSummary, ...]


def save_summary(path: Path, saved: SavedSummary) -> None:
    """Write ``saved``; equal summaries give equal bytes."""
    ranks, columns = [], []
    for rank in saved.ranks:
        own = [column.astype("<i8", copy=False) for column in _columns(rank)]
        columns += own
        ranks.append(
            {
                "identity": attrs.astuple(rank.identity),
                **{name: getattr(rank, name) for name in _SCALARS},
                "phases": rank.phases,
                "collectives": [attrs.astuple(collective) for collective in rank.collectives],
                "kernels": rank.kernels.names,
                "strip": (rank.strip.shift, rank.strip.first),
                "sizes": [column.size for column in own],
            }
        )
    about = {"version": VERSION, "files": [attrs.asdict(file) for file in saved.files], "ranks": ranks}
    text = json.dumps(about, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    stream = io.BytesIO()
    np.savez(
        stream,
        about=np.frombuffer(text, np.uint8),
        columns=np.concatenate([*columns, np.zeros(0, "<i8")]),
    )
    write_atomic(path, stream.getvalue(), synced=False)  # a damaged one is made again


def _columns(rank: RankSummary) -> tuple[Int64Column, ...]:
    return (
        *(getattr(rank.kernels, name) for name in _TIMES),
        *(getattr(rank.operations, name) for name in _OPERATIONS),
        rank.strip.computing_ns,
        rank.strip.communicating_ns,
    )


def load_summary(path: Path) -> SavedSummary:
    """Raises ``BadDataError`` for anything but a summary of this version, ``MissingError`` without one."""
    content = read_regular(path, MOST_BYTES)
    try:
        parts = _parts(content)
        about = parse_json(parts["about"].tobytes(), path)
        if about["version"] != VERSION:
            raise BadDataError(f"{path} is a summary of another version of rpl")
        files = tuple(RecordedFile(**file) for file in about["files"])
        ranks = tuple(_ranks(about["ranks"][:_MOST_RANKS], parts["columns"]))
    except (ValueError, LookupError, TypeError, AttributeError, zipfile.BadZipFile, EOFError) as error:
        raise BadDataError(
            f"{path} is no summary of a rank: {error}", next_step="delete it: the recording is read again"
        ) from None
    return SavedSummary(files, ranks)


def _parts(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an npz. Nothing is unpacked, so that a part is no larger than the file."""
    found = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {member.filename: member for member in archive.infolist()}
        for name, kind in (("about", "|u1"), ("columns", "<i8")):
            member = members[f"{name}.npy"]
            if member.compress_type != zipfile.ZIP_STORED or member.file_size > len(content):
                raise ValueError("a compressed part")
            data = io.BytesIO(archive.read(member))
            if np.lib.format.read_magic(data) != (1, 0):
                raise ValueError("an unknown form of array")
            shape, _, dtype = np.lib.format.read_array_header_1_0(data)
            array = np.frombuffer(data.getbuffer(), np.dtype(kind), offset=data.tell())
            if dtype != np.dtype(kind) or shape != array.shape:
                raise ValueError("an array of another kind")
            found[name] = array
    return found


def _ranks(about: Sequence[dict[str, Any]], columns: Int64Column) -> Iterator[RankSummary]:
    place = 0
    for one in about:
        taken = []
        sizes = one["sizes"]
        if len(sizes) != len(_TIMES) + len(_OPERATIONS) + 2 or min(sizes) < 0:
            raise ValueError("columns of another number")
        for size in sizes:
            taken.append(columns[place : place + size])
            place += size
        times = KernelTimes(_texts(one["kernels"]), *taken[: len(_TIMES)])
        operations = Operations(*taken[len(_TIMES) : -2])
        shift, first = one["strip"]
        rank = RankSummary(
            identity=RankIdentity(*one["identity"]),
            **{name: one[name] for name in _SCALARS},
            phases=tuple((str(n), int(r), int(h), int(k)) for n, r, h, k in one["phases"]),
            collectives=tuple(Collective(*collective) for collective in one["collectives"]),
            kernels=times,
            operations=operations,
            strip=Strip(int(shift), int(first), *taken[-2:]),
        )
        _require_sound(rank)
        yield rank
    if place != columns.size:
        raise ValueError("columns of another length")


def _texts(values: Sequence[object]) -> tuple[str, ...]:
    if not all(isinstance(value, str) for value in values):
        raise ValueError("names that are none")
    return tuple(str(value) for value in values)


def _require_sound(rank: RankSummary) -> None:
    """Raise ``ValueError`` for columns that don't fit each other: an answer indexes by them."""
    times, operations, strip = rank.kernels, rank.operations, rank.strip
    numbers = [getattr(rank, name) for name in _SCALARS[4:]]
    of_kernels = [getattr(times, name).size == len(times.names) for name in _PER_KERNEL]
    few = times.count[times.count <= EXACT_VALUES]
    buckets = times.bucket_kernel.size == times.bucket.size == times.bucket_count.size
    held = np.zeros(len(times.names), np.int64)
    if buckets and times.bucket_kernel.size:
        if int(times.bucket_kernel.min()) < 0 or int(times.bucket_kernel.max()) >= held.size:
            raise ValueError("a kernel that is not there")
        np.add.at(held, times.bucket_kernel, times.bucket_count)
    sizes = {getattr(operations, name).size for name in _OPERATIONS}
    kinds = operations.kind
    good = (
        all(type(number) is int for number in numbers)
        and rank.begin_ns <= rank.end_ns
        and all(of_kernels)
        and list(times.names) == sorted(set(times.names))
        and bool((times.count > 0).all())
        and int(few.sum()) == times.values.size
        and buckets
        and np.array_equal(held, times.count)
        and len(sizes) == 1
        and (not kinds.size or 0 <= int(kinds.min()) <= int(kinds.max()) < len(rank.collectives))
        and bool((operations.begin_ns <= operations.end_ns).all())
        and bool((np.diff(operations.begin_ns) >= 0).all())
        and 0 <= strip.shift < 62
        and strip.computing_ns.size == strip.communicating_ns.size
    )
    if not good:
        raise ValueError("its columns contradict each other")


def is_of(saved: SavedSummary, files: Sequence[Path]) -> bool:
    """Whether the recording in ``files`` (absolute, without links) is the one that was summed up."""
    if list(map(str, files)) != [file.path for file in saved.files]:
        return False
    for path, file in zip(files, saved.files, strict=True):
        try:
            status = path.stat()
        except OSError as error:
            raise MissingError(f"{path} can't be read: {error.strerror}") from None
        same = (status.st_size, status.st_mtime_ns) == (file.bytes, file.changed_ns)
        if not same and (status.st_size != file.bytes or sha256_of(path) != file.sha256):
            return False
    return True
