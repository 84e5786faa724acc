"""Files: read bounded, written whole or not at all, hashed, and what a file system refuses."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from math import isfinite
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rpl_core.errors import BadDataError, MissingError, UsageError

if TYPE_CHECKING:
    from rpl_core.errors import RplError


def write_atomic(
    path: Path, content: str | bytes, *, mode: int | None = None, named: bool = False, synced: bool = True
) -> None:
    """Write ``content`` to a temporary file beside ``path``, sync it and rename it over ``path``.

    ``mode`` are its permissions; else those of the file that it replaces, or of any new file. With ``named``
    the user named this very file: links are followed, and pipes written to; else they are an error. Nothing
    is ever written to a device: a disk would be lost. Raises ``OSError`` (such as ENOSPC) with ``path`` as
    its file name; the old file is then intact. What can be made again need not be ``synced``: a power cut
    may then leave a file of other content, such as none, and nobody waits for the disk.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        status = path.stat() if path.exists() else None
        regular = status is None or stat.S_ISREG(status.st_mode)
        device = status is not None and (stat.S_ISBLK(status.st_mode) or stat.S_ISCHR(status.st_mode))
        if device or (not named and (path.is_symlink() or not regular)):
            what = "There is a device" if device else "There is something that is no regular file"
            raise FileExistsError(errno.EEXIST, what)
        if regular:
            _replace(path.resolve() if named else path, data, mode, status, synced=synced)
        else:
            with os.fdopen(os.open(path, os.O_WRONLY), "wb") as stream:
                stream.write(data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _replace(
    path: Path, data: bytes, mode: int | None, status: os.stat_result | None, *, synced: bool
) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".rpl-", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            if synced:
                os.fsync(descriptor)
            if status is not None:
                with contextlib.suppress(PermissionError):  # a file of somebody else becomes ours
                    os.fchown(descriptor, status.st_uid, status.st_gid)
                mode = stat.S_IMODE(status.st_mode) if mode is None else mode
            os.fchmod(descriptor, 0o666 & ~_umask() if mode is None else mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


# The one door for files that come from elsewhere: what is read is a regular file, and ends.


#: Lists in lists: far above what anything writes, far below where Python gives up (chosen).
MOST_DEPTH = 400
#: Whole numbers of files are addresses, counts and times: the widest ones have 64 bits.
MOST_WHOLE = 1 << 64
#: A value takes some 200 bytes in memory however short it is written.
_BYTES_OF_A_VALUE = 8
#: So many values are read whatever their size.
_VALUES_ALWAYS = 1 << 16


def open_regular(path: Path, most_bytes: int, *, links: bool = True) -> IO[bytes]:
    """An open regular file of at most ``most_bytes``; without ``links`` its name may be no symbolic link.

    Raises ``MissingError`` for one that is not there, ``BadDataError`` for anything else.
    """
    # Non-blocking: opening a named pipe must not wait for its writer.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW)
    try:
        stream = os.fdopen(os.open(path, flags), "rb")
    except IsADirectoryError:
        raise _no_file(path) from None
    except ValueError:  # a NUL in the name
        raise BadDataError(f"{str(path)[:200]!r} can't be the name of a file") from None
    except PermissionError as error:
        raise BadDataError(f"{path} can't be read: {error.strerror}", next_step="check its rights") from None
    except OSError as error:
        if error.errno == errno.ELOOP and not links:
            raise BadDataError(f"{path} is a link: it could lead to any file") from None
        raise MissingError(f"{path} can't be read: {error.strerror}", next_step="check the path") from None
    status = os.fstat(stream.fileno())
    if stat.S_ISREG(status.st_mode) and status.st_size <= most_bytes:
        return stream
    stream.close()
    if not stat.S_ISREG(status.st_mode):
        raise _no_file(path)
    raise too_large(path, most_bytes)


def read_regular(path: Path, most_bytes: int, *, links: bool = True) -> bytes:
    """The content of ``path``, of one opening; a file that grows meanwhile is refused too."""
    with open_regular(path, most_bytes, links=links) as stream:
        size = os.fstat(stream.fileno()).st_size  # so much memory is taken at once, not all that may be read
        content = stream.read(size + 1)
        if len(content) > size:
            content += stream.read(most_bytes + 1 - len(content))
    if len(content) > most_bytes:
        raise too_large(path, most_bytes)
    return content


def parse_json(content: bytes | str, where: object) -> Any:
    """``content`` as JSON of bounded depth, with finite numbers and whole ones of at most 64 bits.

    Raises ``BadDataError`` that names ``where``.
    """
    try:
        value = json.loads(content)
    except RecursionError:
        raise _too_deep(where) from None
    except ValueError as error:  # also bad UTF-8 and whole numbers of thousands of digits
        raise BadDataError(f"{where} is not valid JSON: {error}") from None
    require_bounded(value, where)
    return value


def require_bounded(value: Any, where: object) -> None:
    """Raise ``BadDataError`` where a parsed value is too deep or holds a number that nothing can mean."""
    level = [value]
    for _ in range(MOST_DEPTH):
        parts = [
            p for v in level for p in (v.values() if type(v) is dict else v if type(v) is list else (v,))
        ]
        if any(type(part) in (int, float) and _is_impossible(part) for part in parts):
            place, number = next(_impossible_numbers(value))
            says = "is not finite" if isinstance(number, float) else f"has {number.bit_length()} bits"
            raise BadDataError(f"{where}{': ' if place else ''}{'.'.join(place)}: a number that {says}")
        level = [part for part in parts if type(part) in (dict, list)]
        if not level:
            return
    raise _too_deep(where)


def _is_impossible(number: float) -> bool:
    return not isfinite(number) if type(number) is float else not -MOST_WHOLE <= number <= MOST_WHOLE


def _impossible_numbers(value: Any) -> Iterator[tuple[tuple[str, ...], int | float]]:
    """The numbers that nothing can mean, each with the keys and indices that lead to it."""
    level: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while level:
        yield from ((p, part) for p, part in level if type(part) in (int, float) and _is_impossible(part))
        level = [
            ((*place, str(key)[:200]), inner)
            for place, part in level
            if type(part) in (dict, list)
            for key, inner in (part.items() if type(part) is dict else enumerate(part))
        ]


def refuse_countless(content: bytes, where: object) -> None:
    """Raise ``BadDataError`` for text of nothing but tiny values, before a parser makes gigabytes of them."""
    if content.count(b",") > max(_VALUES_ALWAYS, len(content) // _BYTES_OF_A_VALUE):
        raise BadDataError(f"{where} can't be used: it consists of countless tiny values")


def refuse_repeats(names: Iterable[str], where: object, what: str, most: int = 1) -> None:
    """Raise ``BadDataError`` where one file is named more often than ``most`` times: each is read each time.

    So a small list costs no more than the files that it names.
    """
    for name, times in Counter(names).most_common(1):
        if times > most:
            raise BadDataError(
                f"{where} names {what} {times} times: {name[:200]!r}",
                cause="the file is damaged, or was made to mislead",
            )


def too_large(path: Path, most_bytes: int) -> BadDataError:
    unit, size = ("MiB", most_bytes >> 20) if most_bytes >= 1 << 20 else ("KiB", most_bytes >> 10)
    return BadDataError(f"{path} is larger than {size} {unit}, so it is not read")


def _no_file(path: Path) -> BadDataError:
    return BadDataError(f"{path} is no regular file", next_step="write its content to one and name that")


def _too_deep(where: object) -> BadDataError:
    return BadDataError(f"{where} is nested too deeply")


# SHA-256 of files of any size.


_BLOCK_BYTES = 1 << 20


def sha256_of(path: Path) -> str:
    """The hash in hexadecimal; the file is read in blocks."""
    digest = hashlib.sha256()
    block = memoryview(bytearray(_BLOCK_BYTES))
    with path.open("rb", buffering=0) as stream:
        while count := stream.readinto(block):
            digest.update(block[:count])
    return digest.hexdigest()


# Directories and files that a run needs, and what to say when the file system refuses them.


_FULL = (errno.ENOSPC, errno.EDQUOT)


def storage_error(path: Path, error: OSError, needed_bytes: int | None = None) -> RplError:
    """``MissingError`` for a full disk or quota, ``UsageError`` for a place that can't be written.

    ``needed_bytes`` is what was to be written, where that is known.
    """
    if error.errno in _FULL:
        needed = "" if needed_bytes is None else f": {needed_bytes} bytes are needed, {_free(path)} are free"
        return MissingError(
            f"no space left to write {path}",
            cause=f"{error.strerror}{needed}",
            next_step="free some space, or choose another place with -o DIR",
        )
    return UsageError(
        f"cannot write {path}: {error.strerror}", next_step="choose a place that you may write with -o DIR"
    )


def _free(path: Path) -> str:
    """Bytes that this user may still write where ``path`` is, as text."""
    try:
        return str(shutil.disk_usage(path.parent).free)
    except OSError:
        return "an unknown number"


def make_directory(path: Path) -> None:
    """Make ``path`` and its parents. Raises as ``storage_error`` says."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(path, error) from error
