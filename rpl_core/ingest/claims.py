"""Decide which reader reads which files: the highest priority wins, refusals are kept for the message."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from rpl_core.errors import BadDataError, ForeignFileError, MissingError
from rpl_core.interfaces.reader import InputSet, Reader


@attrs.frozen
class Claims:
    """Sets to read, sets that were recognised but can't be read, and files that nobody knows."""

    readable: tuple[tuple[Reader, InputSet], ...]
    refused: tuple[InputSet, ...]
    unknown: tuple[Path, ...]


def claim_files(files: Sequence[Path], readers: Sequence[Reader]) -> Claims:
    """Ask ``readers`` in order of priority; a file that one has claimed is not offered to the next."""
    left = list(files)
    readable: list[tuple[Reader, InputSet]] = []
    refused: list[InputSet] = []
    for reader in sorted(readers, key=lambda r: -r.priority):
        for inputs in reader.claim(tuple(left)):
            taken = set(inputs.paths)
            left = [path for path in left if path not in taken]
            if inputs.refusal is None:
                readable.append((reader, inputs))
            else:
                refused.append(inputs)
    return Claims(tuple(readable), tuple(refused), tuple(left))


def require_readable(claims: Claims, named: Sequence[Path], *, has_readers: bool) -> None:
    """Raise unless something can be read and every file that the user named himself is understood."""
    explicit = {path for path in named if path.is_file()}
    for inputs in claims.refused:
        if not claims.readable or explicit.intersection(inputs.paths):
            raise ForeignFileError(f"{inputs.paths[0]}: {inputs.refusal}", next_step=inputs.next_step)
    for path in claims.unknown:
        if path in explicit:
            raise _unknown(path, has_readers=has_readers)
    if not claims.readable:
        where = named[0] if named else Path()
        if not has_readers:
            raise _unknown(where, has_readers=False)
        raise BadDataError(
            f"{where} holds no recording that rpl knows",
            cause="the profiler wrote nothing there, or the folder is another one",
            next_step="`rpl plugins list` shows the installed readers",
        )


def _unknown(path: Path, *, has_readers: bool) -> Exception:
    if not has_readers:
        return MissingError(
            f"{path} can't be read: no reader is installed",
            next_step="pip install rpl-rocprofv3 (or rocm-perf-lab for everything)",
        )
    return BadDataError(
        f"{path} is not a recording that rpl knows",
        cause="a damaged or empty file, or a format of another tool",
        next_step="`rpl plugins list` shows the installed readers",
    )
