"""Results JSON of rocprofv3, one file per process: metadata and the records of every section, one by one.

The C scanner of the standard library decodes one value at a time out of a window of text, so memory holds one
record and one piece of the file, however large the file is. The layout is that of rocprofiler-sdk's
serialisation: a list of processes, each an object of sections, some of which are objects of sections again.
"""

from __future__ import annotations

import json
import re
import sys
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from rpl_core.errors import BadDataError
from rpl_core.model.trace import NOT_RECORDED
from rpl_core.text import counted
from rpl_rocprofv3.readers.gzip_limits import (
    GZIP_ERRORS,
    BoundedGzip,
    refuse_bomb,
    refuse_hollow,
    unpacked_head,
)

#: The section that is one object and not a list of records.
METADATA = "metadata"

_ROOT = "rocprofiler-sdk-tool"
_HEAD_BYTES = 4096
_READ_BYTES = 1 << 18
#: No record is as large (one dispatch with its counters has some 100 kB), and no text in a record.
_LARGEST_VALUE = 8 << 20
#: A number at the end of the window may go on behind it: up to "e+" can be left of it.
_NUMBER_TAIL = 2
_SECTION_DEPTH = 2
INT64_LIMIT = 1 << 63
_SPACE = re.compile(r"[ \t\n\r]*")


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


def entries(path: Path) -> Iterator[tuple[str, Any]]:
    """Section and value of every record of every process, in file order; raises ``BadDataError``.

    Sections inside sections are named like ``buffer_records.hip_api``. ``METADATA`` comes as one value.
    """
    refuse_bomb(path)
    with _opened(path) as file:
        text = _Window(file)
        for key in text.members():
            if key != _ROOT or text.peek() != "[":
                text.skip()
                continue
            for _ in text.items():
                if text.peek() == "{":
                    yield from _sections(text, "", 1)
                else:
                    text.skip()
        text.end()


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO | BoundedGzip]:
    try:
        refuse_hollow(path)
        with refusing_depth(path), BoundedGzip(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield file
    except (ValueError, *GZIP_ERRORS) as error:
        raise _unreadable(path, error) from error


@contextmanager
def refusing_depth(path: Path) -> Iterator[None]:
    """Whoever decodes values, or turns one into text, may find it too deep; nobody else knows the file."""
    try:
        yield
    except RecursionError as error:
        raise _unreadable(path, "it is nested too deeply") from error


def _unreadable(path: Path, reason: object) -> BadDataError:
    return BadDataError(
        f"{path} can't be read as JSON: {reason}",
        cause="the file was cut off, or the profiled program ended while it was written",
        next_step="record again, with `rocprofv3 --output-format rocpd` where it exists",
    )


def _sections(text: _Window, prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    for key in text.members():
        section, opening = prefix + key, text.peek()
        if section == METADATA:
            yield section, text.value()
        elif opening == "[":
            for _ in text.items():
                yield section, text.value()
        elif opening == "{" and depth < _SECTION_DEPTH:
            yield from _sections(text, section + ".", depth + 1)
        else:
            text.value()


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _short_int(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(counted(len(digits), "digit"))
    return int(digits)


_MOST_DIGITS = 4300
#: Python limits itself since 3.10.7; before, a long integer takes the square of its length.
_PARSE_INT = None if hasattr(sys, "get_int_max_str_digits") else _short_int


class _Window:
    """The part of a JSON text between what was decoded and what was read. Raises ``ValueError``."""

    def __init__(self, file: BinaryIO | BoundedGzip) -> None:
        self._file = file
        self._decode = getincrementaldecoder("utf-8")().decode
        self._scan = json.JSONDecoder(parse_constant=_no_constant, parse_int=_PARSE_INT).raw_decode
        self._text, self._at = "", 0
        self._before = 0  # characters that are no longer in the window
        self._ended = False

    def peek(self) -> str:
        """The next character that is no space, empty at the end of the file."""
        character = self._text[self._at : self._at + 1]
        if character and character not in " \t\n\r":
            return character
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._more()

    def members(self) -> Iterator[str]:
        """The keys of the object that comes next; the value of each must be taken before the next key."""
        for _ in self._elements("{", "}"):
            key = self.value()
            if not isinstance(key, str):
                raise self._unexpected("a key")
            self._take(":")
            yield key

    def items(self) -> Iterator[None]:
        """Stops before each item of the array that comes next; each must be taken."""
        return self._elements("[", "]")

    def value(self) -> Any:
        """Decode the value that comes next."""
        self.peek()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except ValueError as error:
                if self._ended or not isinstance(error, json.JSONDecodeError):
                    raise self._unexpected("a value", error) from None
                if len(self._text) - self._at > _LARGEST_VALUE:
                    raise self._too_large() from None
            else:
                if end - self._at > _LARGEST_VALUE:
                    raise self._too_large()
                tail = 0 if isinstance(value, (str, dict, list)) else _NUMBER_TAIL
                if self._ended or end + tail < len(self._text):
                    break
            self._more()
        start, self._at = self._at, end
        if self._text.find("\\u", start, end) >= 0:
            # Half a pair of surrogates can't be written into any document.
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        return value

    def skip(self) -> None:
        """Leave out the value that comes next, of any size."""
        opening = self.peek()
        if opening == "{":
            for _ in self.members():
                self.skip()
        elif opening == "[":
            for _ in self.items():
                self.skip()
        else:
            self.value()

    def end(self) -> None:
        """Nothing may follow."""
        if self.peek():
            raise self._unexpected("the end of the file")

    def _elements(self, opening: str, closing: str) -> Iterator[None]:
        self._take(opening)
        if self.peek() == closing:
            self._at += 1
            return
        while True:
            yield
            if self.peek() == closing:
                self._at += 1
                return
            self._take(",")

    def _take(self, character: str) -> None:
        if self.peek() != character:
            raise self._unexpected(f"'{character}'")
        self._at += 1

    def _more(self) -> None:
        """Read on: at least as much as is waiting, so that a long value is not scanned too often."""
        left = self._text[self._at :]
        data = self._file.read(max(_READ_BYTES, len(left)))
        self._ended = not data
        self._before += self._at
        self._text, self._at = left + self._decode(data, final=self._ended), 0

    def _place(self) -> str:
        return f"character {self._before + self._at}"

    def _too_large(self) -> ValueError:
        return ValueError(f"a value of more than {_LARGEST_VALUE >> 20} MiB behind {self._place()}")

    def _unexpected(self, wanted: str, error: ValueError | None = None) -> ValueError:
        if isinstance(error, json.JSONDecodeError):
            place = self._before + error.pos
            if self._ended and error.pos >= len(self._text):
                return ValueError(f"it ends at character {place}, inside a value")
            return ValueError(f"{error.msg} at character {place}")
        if not self.peek():
            return ValueError(f"it ends at {self._place()}, before {wanted}")
        if error and "digits" in str(error):
            return ValueError(f"a number of thousands of digits behind {self._place()}")
        return ValueError(str(error) if error else f"no {wanted} at {self._place()}")


def value_at(record: Any, *keys: str) -> Any:
    """The value below nested keys, None where there is none."""
    for key in keys:
        if not isinstance(record, dict):
            return None
        record = record.get(key)
    return record


def int64(value: Any) -> int:
    """``value`` as a 64-bit integer, -1 where it is none."""
    # True and False are no numbers, though their class is a kind of int.
    return value if type(value) is int and -INT64_LIMIT <= value < INT64_LIMIT else NOT_RECORDED


def number_at(record: Any, *keys: str) -> int:
    """The number below nested keys."""
    return int64(value_at(record, *keys))


def fields(value: Any) -> dict[str, Any]:
    """The members of an object; none of anything else."""
    return value if type(value) is dict else {}


def text_at(record: Any, *keys: str) -> str | None:
    value = value_at(record, *keys)
    return value if isinstance(value, str) and value else None
