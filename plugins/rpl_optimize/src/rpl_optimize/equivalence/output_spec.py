"""What the user names as an output: a file, ``-`` for standard output, or ``file:type`` for raw numbers."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from rpl_core.errors import UsageError
from rpl_core.values import frozen

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
