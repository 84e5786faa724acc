"""The folder of a capture: nothing is written over, an older capture only gives way to a whole one."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rpl_core.errors import UsageError
from rpl_core.process.storage import make_directory, storage_error
from rpl_vmreplay.capture.extras import SENTINEL
from rpl_vmreplay.capture.files import DISPATCH, REGIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def output_folder(path: Path, *, replace: bool) -> Iterator[Path]:
    """``path`` as an absolute one, free for a capture. With ``replace`` a capture in it is moved aside first.

    It comes back unless a finished capture has taken its place; what a failed one left is then beside it.
    """
    path = path.absolute()
    older = _moved_aside(path, replace=replace)
    try:
        make_directory(path.parent)
        yield path
    finally:
        if older is not None:
            _settle(path, older)


def _moved_aside(path: Path, *, replace: bool) -> Path | None:
    if not path.exists() and not path.is_symlink():
        return None
    if path.is_symlink() or not path.is_dir():
        raise UsageError(f"{path} is no folder", next_step="choose another one with -o DIR")
    if not any(path.iterdir()):
        return None
    if not replace:
        raise UsageError(
            f"{path} exists and is not empty", next_step="choose another folder with -o DIR, or add --replace"
        )
    if not (path / DISPATCH).exists() and not (path / REGIONS).exists():
        raise UsageError(
            f"{path} is no capture: --replace leaves it alone", next_step="choose another folder"
        )
    return _renamed(path, f"{path.name}.before")


def _settle(path: Path, older: Path) -> None:
    if (path / SENTINEL).exists():
        shutil.rmtree(older, ignore_errors=True)
        return
    if path.exists():
        _renamed(path, f"{path.name}.incomplete")
    older.rename(path)


def _renamed(path: Path, name: str) -> Path:
    target, number = path.with_name(name), 2
    while target.exists() or target.is_symlink():
        target, number = path.with_name(f"{name}-{number}"), number + 1
    try:
        return path.rename(target)
    except OSError as error:
        raise storage_error(path, error) from error
