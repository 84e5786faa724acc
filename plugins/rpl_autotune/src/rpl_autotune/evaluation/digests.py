"""What a measurement depends on, as hashes: programs and the files that are named on their command lines."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.files.digest import sha256_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: Larger files, such as data sets, count by size and time of change: hashing them would take too long.
_MOST_BYTES = 256 << 20
#: With more sources around the built one nobody looks at all of them for one build (chosen).
_MOST_SOURCES = 2000
_SOURCE_SUFFIXES = frozenset(
    (
        *(".h", ".hh", ".hpp", ".hxx", ".cuh", ".inc", ".inl", ".ipp", ".def", ".c", ".cc", ".cpp", ".cxx"),
        *(".cu", ".hip", ".cl", ".s", ".S", ".py", ".mk", ".cmake"),
    )
)
_SOURCE_NAMES = frozenset(("Makefile", "CMakeLists.txt"))


def text_digest(parts: Iterable[str]) -> str:
    """One hash of several texts, which differ also where they are only divided differently."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def command_digest(words: Sequence[str], place: Path) -> str:
    """The hash of the program and of every file that the command names."""
    return text_digest(part for path in _files(words, place) for part in (path.name, _content(path)))


def source_digest(words: Sequence[str], place: Path) -> str | None:
    """The hash of what a build reads: compiler, named files, and the sources around them.

    ``None`` where there are too many to look at: then nobody can say that a build would be the same.
    Headers elsewhere (of the system, of libraries) are not seen.
    """
    named = list(_files(words, place))
    folders = {path.parent for path in named[1:]} | set(_include_folders(words, place))
    around: set[Path] = set()
    for folder in folders:
        for path in folder.rglob("*"):
            if path.suffix in _SOURCE_SUFFIXES or path.name in _SOURCE_NAMES:
                around.add(path)
            if len(around) > _MOST_SOURCES:
                return None
    files = [*named, *sorted(around - set(named))]
    return text_digest(part for path in files if path.is_file() for part in (str(path), _content(path)))


def _files(words: Sequence[str], place: Path) -> Iterator[Path]:
    """The program first, then the files among the other words."""
    for number, word in enumerate(words):
        path = place / word
        if number == 0 and not path.is_file():
            found = shutil.which(word)
            path = Path(found) if found else path
        if word and path.is_file():
            yield path.resolve()


def _include_folders(words: Sequence[str], place: Path) -> Iterator[Path]:
    for word in words:
        if word.startswith("-I") and (place / word[2:]).is_dir() and len(word) > 2:
            yield place / word[2:]


def _content(path: Path) -> str:
    status = path.stat()
    if status.st_size > _MOST_BYTES:
        return f"{status.st_size} {status.st_mtime_ns}"
    return sha256_of(path)
