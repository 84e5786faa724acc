"""Arrays of numbers, block by block: ``.npy`` files and raw files whose type the user names.

NaN is equal only to NaN at the same place, an infinity only to itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core.text.table import counted
from rpl_optimize.equivalence.comparison import BLOCK_BYTES, Comparison, Numbers, Tolerance
from rpl_optimize.equivalence.output_spec import RAW_TYPES

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

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
