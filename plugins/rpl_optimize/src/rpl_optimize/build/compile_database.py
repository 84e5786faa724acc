"""Read ``compile_commands.json``: which compiler and which options each source is compiled with.

Format: clang's "JSON Compilation Database Format Specification".
"""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

from rpl_core.errors import BadDataError, MissingError
from rpl_core.files.bounded import parse_json, read_regular
from rpl_core.values import frozen

NAME = "compile_commands.json"
_PLACES = (Path(), Path("build"))
#: Databases of large projects reach some tens of megabytes.
_MAX_BYTES = 256 << 20
#: They start a compiler; the link has no use for them.
_LAUNCHERS = frozenset(("ccache", "sccache", "distcc", "icecc"))
#: CMake compiles what belongs to target ``app`` into ``CMakeFiles/app.dir/``.
_CMAKE_TARGET = re.compile(r"(?:^|/)CMakeFiles/([^/]+)\.dir/")


@frozen
class Entry:
    """How one file is compiled. Paths are absolute; ``target`` is the one of CMake, if the entry shows it."""

    file: Path
    directory: Path
    words: tuple[str, ...]
    target: str | None = None

    @property
    def compiler(self) -> str:
        return self.words[0]


def find_database(source: Path) -> Path | None:
    """The nearest database at or above the source's directory, there or in ``build``."""
    for folder in source.parents:
        for place in _PLACES:
            path = folder / place / NAME
            if path.is_file():
                return path
    return None


def read_database(path: Path) -> tuple[Entry, ...]:
    """All entries in file order; a directory stands for the database in it.

    Raises ``MissingError`` without the file, ``BadDataError`` for what is no compile database.
    """
    path = (path / NAME if path.is_dir() else path).absolute()
    if not path.exists():
        raise MissingError(
            f"no compile database at {path}",
            next_step="make one with `cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON` or `bear -- make`",
        )
    values = parse_json(read_regular(path, _MAX_BYTES), path)
    if not isinstance(values, list):
        raise BadDataError(f"{path}: a compile database is a list, this is a {type(values).__name__}")
    return tuple(_entry(value, f"{path}, entry {number}", path.parent) for number, value in enumerate(values))


def _entry(value: Any, where: str, folder: Path) -> Entry:
    if not isinstance(value, dict):
        raise BadDataError(f"{where}: not an object")
    directory = folder / _text(value, "directory", where)
    words = _without_launcher(_words(value, where))
    if not words:
        raise BadDataError(f"{where}: no command")
    output = value.get("output") if isinstance(value.get("output"), str) else _value_behind(words, "-o")
    target = _CMAKE_TARGET.search(output or "")
    return Entry(
        file=(directory / _text(value, "file", where)).resolve(),
        directory=directory,
        words=words,
        target=None if target is None else target[1],
    )


def _words(value: dict[str, Any], where: str) -> tuple[str, ...]:
    listed = value.get("arguments")
    if isinstance(listed, list) and all(isinstance(word, str) for word in listed):
        return tuple(listed)
    try:
        return tuple(shlex.split(_text(value, "command", where)))
    except ValueError as error:
        raise BadDataError(f"{where}: command can't be split into words: {error}") from None


def _without_launcher(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[1:] if words and Path(words[0]).name in _LAUNCHERS else words


def _value_behind(words: tuple[str, ...], option: str) -> str | None:
    return next((value for word, value in pairwise(words) if word == option), None)


def _text(value: dict[str, Any], key: str, where: str) -> str:
    text = value.get(key)
    if not isinstance(text, str) or not text or "\0" in text:
        raise BadDataError(f"{where}: {key} is {text!r}, expected a text")
    return text
