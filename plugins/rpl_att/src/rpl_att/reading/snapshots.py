"""``snapshots.json``: which source files were copied into the folder, by the path that ISA rows name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rpl_att.reading.folder import TraceFolder
from rpl_core.errors import BadDataError

_MAX_SOURCE_BYTES = 16 << 20
_MAX_DEPTH = 64
_LONGEST_LINE = 400
#: Separates the frames of an inline chain, innermost first (docs/reference/thread-trace.md, 2.3).
INLINE = " -> "


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


def source_texts(folder: TraceFolder, named: Iterable[str]) -> dict[str, str]:
    """The text of every line that ``named`` entries ("path:line", or a chain of them) point at.

    Lines of files without a copy are left out, and each is cut at some length: a report shows them.
    """
    copies = source_names(folder)
    if not copies:
        return {}
    wanted: dict[str, set[int]] = {}
    for entry in dict.fromkeys(named):
        path, number = place_of(entry.partition(INLINE)[0].strip())
        if number is not None and path in copies:
            wanted.setdefault(path, set()).add(number)
    texts: dict[str, str] = {}
    for path, numbers in sorted(wanted.items()):
        lines = read_source(folder, copies, path) or []
        texts |= {f"{path}:{n}": lines[n - 1].strip()[:_LONGEST_LINE] for n in numbers if 0 < n <= len(lines)}
    return texts


def place_of(source: str) -> tuple[str, int | None]:
    """ "path:line" in its parts; without a number there is no line."""
    path, _, number = source.rpartition(":")
    return (path, int(number)) if number.isdecimal() and len(number) < 10 else (source, None)
