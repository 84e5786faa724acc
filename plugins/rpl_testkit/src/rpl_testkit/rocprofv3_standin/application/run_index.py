"""Which run this is: a counter kept in a file, so that repeated runs differ in a repeatable way."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["next_run_index", "run_seed"]


def next_run_index(environment: Mapping[str, str]) -> int | None:
    """Count this run in the file that `RPL_STANDIN_STATE` names, from 1; None without it."""
    name = environment.get("RPL_STANDIN_STATE")
    if not name:
        return None
    with Path(name).open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        index = int(file.read() or 0) + 1
        file.truncate(0)
        file.write(str(index))
    return index


def run_seed(environment: Mapping[str, str], index: int | None, output_directory: str | None) -> str:
    """Return the seed of this run's jitter.

    Runs differ by their index or, without a counter file, by the last part of their output directory; so
    the same series of runs repeats exactly.
    """
    base = environment.get("RPL_STANDIN_SEED", "0")
    place = Path(output_directory).name if output_directory else ""
    return f"{base}/{place if index is None else index}"
