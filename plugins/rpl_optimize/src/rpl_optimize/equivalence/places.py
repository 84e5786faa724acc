"""Directories for runs inside the scratch directory that a check was given."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from rpl_core.process.storage import storage_error

if TYPE_CHECKING:
    from pathlib import Path


def fresh_place(directory: Path, name: str) -> Path:
    """Make and return ``directory/name``, or ``name-2`` and so on where earlier runs stay.

    Raises as ``rpl_core.process.storage.storage_error`` says.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            place = directory / (name if number == 1 else f"{name}-{number}")
            try:
                place.mkdir()
            except FileExistsError:
                continue
            return place
    except OSError as error:
        raise storage_error(directory, error) from error
    raise AssertionError("unreachable")
