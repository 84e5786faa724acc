"""The one door for files that come from elsewhere: what is read is a regular file, and ends.

Who reads a pipe waits for ever, who reads a device never ends, and a small file can hold a value that takes
gigabytes or a depth that no reader survives. So a size, a depth, the digits and the range of numbers and the
count of references are bounded here, once; ``tests/house/test_every_read.py`` lists every other opening of a
file in the product and says where its bound is.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from math import isfinite
from typing import IO, TYPE_CHECKING, Any

from rpl_core.errors import BadDataError, MissingError

if TYPE_CHECKING:
    from pathlib import Path

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
