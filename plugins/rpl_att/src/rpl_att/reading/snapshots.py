"""``snapshots.json``: which source files were copied into the folder, by the path that ISA rows name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rpl_att.reading.folder import TraceFolder
from rpl_core.errors import BadDataError

_MAX_SOURCE_BYTES = 16 << 20
_MAX_DEPTH = 64


def source_names(folder: TraceFolder) -> dict[str, str]:
    """Path of a source file when it was compiled -> name of its copy in the folder."""
    return dict(_leaves(folder.table("snapshots.json") or {}, "", 0, folder))


def _leaves(tree: Any, prefix: str, depth: int, folder: TraceFolder) -> Iterator[tuple[str, str]]:
    if depth > _MAX_DEPTH or not isinstance(tree, dict):
        raise BadDataError(f"{folder.path / 'snapshots.json'} is no tree of at most {_MAX_DEPTH} folders")
    for name, value in sorted(tree.items()):
        path = "/" if name == "/" and not prefix else f"{prefix}{'' if prefix in ('', '/') else '/'}{name}"
        if isinstance(value, str):
            yield path, value
        else:
            yield from _leaves(value, path, depth + 1, folder)


def read_source(folder: TraceFolder, names: dict[str, str], path: str) -> list[str] | None:
    """Lines of the copy of ``path``, or ``None`` when no copy was kept."""
    name = names.get(path)
    copy = folder.find(name) if name is not None else None
    if copy is None or copy.stat().st_size > _MAX_SOURCE_BYTES:
        return None
    return copy.read_text(encoding="utf-8", errors="replace").splitlines()
