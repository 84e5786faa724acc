"""What a pass was asked to sample, written beside its files: rocprofv3 does not write the interval down."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rpl_core.errors import RplError
from rpl_core.files.atomic import write_atomic
from rpl_core.files.bounded import parse_json, read_regular

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["STATED", "read_interval", "stated_beside", "write_stated"]

STATED = "rpl_pc_sampling.json"
_LARGEST_BYTES = 4096


def write_stated(directory: Path, method: str, unit: str, interval: int) -> Path:
    """Raises ``OSError`` as any writing."""
    path = directory / STATED
    write_atomic(path, json.dumps({"method": method, "unit": unit, "interval": interval}) + "\n")
    return path


def stated_beside(path: Path, files: Iterable[Path]) -> list[Path]:
    """The statement in the folder of ``path``, if it is among ``files``."""
    return [other for other in files if other.name == STATED and other.parent == path.parent]


def read_interval(files: Iterable[Path]) -> int | None:
    """The interval that a statement among ``files`` names; ``None`` without one, or for a damaged one."""
    for path in files:
        if path.name == STATED:
            try:
                content = parse_json(read_regular(path, _LARGEST_BYTES), path)
            except RplError:
                return None
            interval = content.get("interval") if isinstance(content, dict) else None
            return interval if type(interval) is int and interval > 0 else None
    return None
