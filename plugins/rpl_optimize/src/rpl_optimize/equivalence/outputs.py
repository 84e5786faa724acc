"""Whether two outputs are equal within a tolerance: arrays block by block, texts token by token."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.errors import UsageError
from rpl_core.text import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


STANDARD_OUTPUT = "-"
#: Little-endian, as the GPU and its host have them; NumPy has no bf16.
RAW_TYPES = {
    "f16": "<f2",
    "bf16": "<u2",
    "f32": "<f4",
    "f64": "<f8",
    **{f"i{8 * size}": f"<i{size}" for size in (1, 2, 4, 8)},
    **{f"u{8 * size}": f"<u{size}" for size in (1, 2, 4, 8)},
}
#: A file's name does not end like that; a slip of the type would look for a file that nobody writes.
_LIKE_A_TYPE = re.compile(r"(?:b?f|float|[iu]|u?int)\d+(?:_t)?|float|double|int|half")


@frozen
class OutputSpec:
    """``path`` is relative to the working directory, ``None`` for standard output.

    ``number_type`` is a key of ``RAW_TYPES``, or ``None`` where the file says itself what it holds.
    """

    name: str
    path: PurePosixPath | None
    number_type: str | None = None


def read_outputs(texts: tuple[str, ...]) -> tuple[OutputSpec, ...]:
    """Raises ``UsageError`` for a path that a stand-in for the working directory can't hold."""
    return tuple(read_output(text) for text in texts)


def read_output(text: str) -> OutputSpec:
    name, _, last = text.rpartition(":")
    number_type = last if name and last in RAW_TYPES else None
    if name and number_type is None and _LIKE_A_TYPE.fullmatch(last):
        raise UsageError(
            f"the output {text}: {last} is no type of numbers", next_step=f"one of {', '.join(RAW_TYPES)}"
        )
    if number_type is None:
        name = text
    if name == STANDARD_OUTPUT:
        return OutputSpec(name, None, number_type)
    path = PurePosixPath(name)
    if path.is_absolute():
        raise UsageError(
            f"the output {name} is an absolute path, so a candidate's run would overwrite the file in place",
            next_step="let the program write below its working directory, or use a validation command",
        )
    if not name or "\0" in name or ".." in path.parts or path == PurePosixPath():
        raise UsageError(f"the output {name!r} is not a file below the working directory")
    return OutputSpec(name, path, number_type)


def output_paths(texts: tuple[str, ...]) -> tuple[PurePosixPath, ...]:
    """Only the files."""
    return tuple(spec.path for spec in read_outputs(texts) if spec.path is not None)


# What comparing two outputs can say, and the tolerance that it uses.

#: Files are compared in blocks of this many bytes, a multiple of every number's size.
BLOCK_BYTES = 1 << 22


@frozen
class Comparison:
    """``equal`` is ``None`` where the two can't be compared. ``spread``: they differ within the tolerance."""

    equal: bool | None
    detail: str
    spread: bool = False


@frozen
class Tolerance:
    """Numbers may differ by ``absolute + relative * |baseline|``."""

    relative: float
    absolute: float

    @property
    def exact(self) -> bool:
        return self.relative == 0 and self.absolute == 0

    def allows(self, baseline: float, difference: float) -> bool:
        return difference <= self.absolute + self.relative * abs(baseline)

    def __str__(self) -> str:
        return f"{self.absolute:g} + {self.relative:g} |baseline|"


@attrs.define
class Numbers:
    """What was seen of two sequences of numbers: how many differ, and the largest difference."""

    tolerance: Tolerance
    count: int = 0
    departed: int = 0
    _worst: dict[bool, tuple[float, str]] = attrs.field(factory=dict, init=False)  # by "allowed"

    def note(self, difference: float, place: str, *, allowed: bool, departed: int = 1) -> None:
        """The worst of ``departed`` numbers outside the tolerance, or a difference inside of it."""
        difference = math.inf if math.isnan(difference) else difference
        self.departed += 0 if allowed else departed
        if allowed not in self._worst or difference > self._worst[allowed][0]:
            self._worst[allowed] = (difference, place)

    def comparison(self) -> Comparison:
        if not self._worst:
            return Comparison(True, f"{counted(self.count, 'number')} equal")
        difference, place = self._worst[self.departed == 0]
        what = f"largest difference {difference:.6g}, {place}"
        if self.departed:
            share = f"{self.departed} of {self.count} numbers differ by more than {self.tolerance}"
            return Comparison(False, f"{share}; {what}")
        return Comparison(
            True, f"{counted(self.count, 'number')} within {self.tolerance}; {what}", spread=True
        )


def blocks_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while block := stream.read(BLOCK_BYTES):
            yield block


# Arrays of numbers, block by block: ``.npy`` files and raw files whose type the user names.
#
# NaN is equal only to NaN at the same place, an infinity only to itself.

_NUMBER_KINDS = "fiu"


def compare_raw(baseline: Path, candidate: Path, number_type: str, tolerance: Tolerance) -> Comparison:
    """Little-endian numbers of one type without any header."""
    import numpy as np

    sizes = baseline.stat().st_size, candidate.stat().st_size
    if sizes[0] != sizes[1]:
        return Comparison(False, f"{sizes[0]} bytes became {sizes[1]}")
    dtype = np.dtype(RAW_TYPES[number_type])
    if sizes[0] % dtype.itemsize:
        return Comparison(None, f"{sizes[0]} bytes are no whole number of {number_type} values")
    sides = [np.memmap(path, dtype=dtype, mode="r") for path in (baseline, candidate)]
    return _compare_flat(sides[0], sides[1], tolerance, bfloat=number_type == "bf16")


def compare_npy(baseline: Path, candidate: Path, tolerance: Tolerance) -> Comparison:
    """Two ``.npy`` files: type, shape and order of elements must agree."""
    sides = []
    for path, whose in ((baseline, "the baseline's"), (candidate, "the candidate's")):
        array = _mapped(path)
        if isinstance(array, str):
            return Comparison(None if path == baseline else False, f"{whose} file {array}")
        sides.append(array)
    left, right = sides
    for what in ("dtype", "shape"):
        old, new = getattr(left, what), getattr(right, what)
        if old != new:
            return Comparison(False, f"the {what} {old} became {new}")
    if left.flags.c_contiguous != right.flags.c_contiguous:
        return Comparison(False, "the order of the elements changed between C and Fortran")
    return _compare_array(left.ravel(order="K"), right.ravel(order="K"), tolerance)


def _mapped(path: Path) -> NDArray[Any] | str:
    import numpy as np

    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError, SyntaxError, MemoryError, OverflowError) as error:
        return f"is not a readable .npy file: {str(error).splitlines()[0] if str(error) else 'damaged'}"
    return array if isinstance(array, np.ndarray) else "holds several arrays, not one"


def _compare_array(left: NDArray[Any], right: NDArray[Any], tolerance: Tolerance) -> Comparison:
    import numpy as np

    if left.dtype.kind == "c":
        part = np.dtype(f"{left.dtype.byteorder}f{left.dtype.itemsize // 2}")
        return _compare_flat(left.view(part), right.view(part), tolerance)
    if left.dtype.kind not in _NUMBER_KINDS:
        same = all(left[b].tobytes() == right[b].tobytes() for b in _blocks(left))
        return Comparison(
            same, f"{counted(left.size, 'element')} of type {left.dtype} {'are' if same else 'are not'} equal"
        )
    return _compare_flat(left, right, tolerance)


def _compare_flat(
    left: NDArray[Any], right: NDArray[Any], tolerance: Tolerance, *, bfloat: bool = False
) -> Comparison:
    numbers = Numbers(tolerance, count=left.size)
    for block in _blocks(left):
        old, new = left[block], right[block]
        if bfloat:
            old, new = _widened(old), _widened(new)
        _note_block(old, new, block.start, numbers)
    return numbers.comparison()


def _blocks(array: NDArray[Any]) -> list[slice]:
    step = max(1, BLOCK_BYTES // max(1, array.dtype.itemsize))
    return [slice(begin, begin + step) for begin in range(0, array.size, step)]


def _widened(values: NDArray[Any]) -> NDArray[Any]:
    """bf16 is the upper half of a 32-bit float."""
    import numpy as np

    wide: NDArray[Any] = (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return wide


def _note_block(old: NDArray[Any], new: NDArray[Any], begin: int, numbers: Numbers) -> None:
    import numpy as np

    unequal = (old != new) & ~((old != old) & (new != new))  # NaN is not itself
    if not unequal.any():
        return
    places = np.flatnonzero(unequal)
    before, after = old[places], new[places]
    with np.errstate(all="ignore"):
        differences = _distances(before, after)
        limits = numbers.tolerance.absolute + numbers.tolerance.relative * np.abs(before.astype(np.float64))
        allowed = np.isfinite(before.astype(np.float64)) & (differences <= limits)
    ranked = np.where(np.isnan(differences), np.inf, differences)
    departed = int((~allowed).sum())
    at = int(np.argmax(np.where(allowed, -1.0, ranked) if departed else ranked))
    place = f"element {begin + int(places[at])}: {before[at]!s} became {after[at]!s}"
    numbers.note(float(ranked[at]), place, allowed=not departed, departed=departed)


def _distances(before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.float64]:
    """|after - before| without overflow: integers of 64 bits are subtracted as such."""
    import numpy as np

    if before.dtype.kind == "f":
        apart: NDArray[np.float64] = np.abs(after.astype(np.float64) - before.astype(np.float64))
        return apart
    high, low = np.maximum(before, after), np.minimum(before, after)
    # Modulo 2^64 the subtraction is exact, since the distance of two 64-bit integers fits.
    exact: NDArray[np.float64] = (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.float64)
    return exact


# Two texts token by token: numbers within the tolerance, everything else as it is.
#
# A number is written in decimal and stands alone or between punctuation: the digits of ``0x1f``, ``v2`` or
# ``3ms`` are part of a word. Blanks only separate, so a column that got wider is no difference.

_NUMBER = re.compile(
    rb"(?<![\w.])([-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf(?:inity)?|nan))(?![\w.])", re.IGNORECASE
)
#: Behind these a long line may be cut; no number holds one.
_SEPARATORS = (b" ", b"\t", b",", b";", b"]", b"}", b")")
_PUNCTUATION = re.compile(rb"([,;\]})])")
_LONGEST_WORD = 1 << 16


def looks_like_text(path: Path) -> bool:
    """Whether the beginning holds no NUL byte and is UTF-8."""
    with path.open("rb") as stream:
        begin = stream.read(1 << 16)
    try:
        begin.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(begin) - 4 and b"\0" not in begin  # a character cut by the block's end
    return b"\0" not in begin


def compare_text(baseline: Path, candidate: Path, tolerance: Tolerance) -> Comparison:
    """Compare all tokens; the first that is no number and differs ends it."""
    try:
        numbers = Numbers(tolerance)
        for left, right in zip_longest(_tokens(baseline), _tokens(candidate)):
            if left is None or right is None:
                what = "ends early" if right is None else "goes on behind the baseline's end"
                return Comparison(
                    False, f"the text {what}, in line {(left or right or (b'', 0))[1]} of the longer"
                )
            (old, line), (new, _) = left, right
            problem = _compare_token(old, new, line, numbers)
            if problem is not None:
                return Comparison(False, problem)
        return numbers.comparison()
    except _EndlessWordError:
        return Comparison(None, "a word of it is too long to compare by numbers")


def _compare_token(old: bytes, new: bytes, line: int, numbers: Numbers) -> str | None:
    is_number = _NUMBER.fullmatch(old) is not None
    numbers.count += is_number
    if old == new:
        return None
    if not is_number or _NUMBER.fullmatch(new) is None:
        return f"{_shown(old)} became {_shown(new)} in line {line}"
    before, after = float(old), float(new)
    if before == after or (math.isnan(before) and math.isnan(after)):
        return None
    difference = abs(after - before)
    allowed = math.isfinite(before) and numbers.tolerance.allows(before, difference)
    numbers.note(difference, f"{_shown(old)} became {_shown(new)} in line {line}", allowed=allowed)
    return None


def _tokens(path: Path) -> Iterator[tuple[bytes, int]]:
    """Numbers and the text between them, with their line."""
    for word, line in _words(path):
        for part in _NUMBER.split(word):
            if part:
                yield part, line


def _words(path: Path) -> Iterator[tuple[bytes, int]]:
    rest, line = b"", 1
    for block in blocks_of(path):
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        for text in lines:
            for word in _split(text):
                yield word, line
            line += 1
        # A line may be as long as the file: its words so far are done with.
        end = max(rest.rfind(separator) for separator in _SEPARATORS) + 1
        for word in _split(rest[:end]):
            yield word, line
        rest = rest[end:]
        if len(rest) > _LONGEST_WORD:
            raise _EndlessWordError
    for word in _split(rest):
        yield word, line


def _split(text: bytes) -> list[bytes]:
    """At blanks, and behind every separator: so words don't depend on where a long line was cut."""
    return _PUNCTUATION.sub(rb"\1 ", text).split()


class _EndlessWordError(Exception):
    """Cutting it anywhere might cut a number in two."""


def _shown(token: bytes) -> str:
    text = token[:40].decode("utf-8", "replace")
    return f"{text!r}..." if len(token) > 40 else repr(text)
