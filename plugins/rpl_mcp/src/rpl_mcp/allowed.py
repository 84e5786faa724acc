"""What an agent may touch: one folder, commands word for word, and sources only where that is allowed.

The agent's words come from a language model that reads kernels, logs and pages of others. So a path is
checked part by part, a command is one of a list, and neither can be taken for an option of rpl.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.run_directory.manifest import claim_path
from rpl_core.text import readable
from rpl_core.values import frozen

#: Where new runs, captures and sessions are made, below the root.
RUNS = "rpl-runs"
#: Characters of a refused word that are repeated in the message.
_SHOWN = 120


@frozen
class Allowed:
    """``root`` is absolute and no link. ``accept``: accepted sources may be written."""

    root: Path
    commands: tuple[tuple[str, ...], ...]
    accept: bool = False

    @classmethod
    def of(cls, root: Path, commands: Iterable[str], *, accept: bool) -> Allowed:
        """From the words of the command line; ``UsageError`` for a command that can't be split."""
        return cls(root.resolve(), tuple(map(_split, commands)), accept)

    def command(self, words: Sequence[str]) -> tuple[str, ...]:
        """``words``, if they are exactly those of an allowed command."""
        if tuple(words) in self.commands:
            return tuple(words)
        raise UsageError(
            f"this command is not allowed: {readable(shlex.join(words), _SHOWN)}",
            next_step="use one of allowed_commands; the user allows others with `rpl mcp --allow-command`",
        )

    def path(self, text: str) -> Path:
        """The absolute path of something that is there, below the root and reached by no link."""
        path = self._inside(text)
        if not path.exists():
            raise MissingError(f"there is no {readable(text, _SHOWN)}", next_step="name what is in the root")
        return path

    def result(self, text: str) -> str:
        """A file that a program of the root is to write, as the program itself names it."""
        if text != "-":
            self._inside(text.partition(":")[0])
        return text

    def new(self, name: str) -> Path:
        """A new empty folder for what a tool makes."""
        return claim_path(self._inside(RUNS), (name,))

    def told(self, path: Path | str) -> str:
        """A path as agents know it: from the root on."""
        return os.path.relpath(path, self.root)

    def _inside(self, text: str) -> Path:
        """Raises ``BadDataError`` for a path that leaves the root, or might."""
        shown = readable(text, _SHOWN)
        parts = Path(text).parts
        if not parts or "\0" in text or Path(text).is_absolute() or ".." in parts:
            raise BadDataError(
                f"{shown!r} is not a path below the root", next_step="name it from the root on, without `..`"
            )
        place = self.root
        for part in parts:
            place = place / part
            try:
                if stat.S_ISLNK(place.lstat().st_mode):
                    raise BadDataError(
                        f"{shown!r} goes through a link, which could lead anywhere",
                        next_step="name the file or folder itself",
                    )
            except (FileNotFoundError, NotADirectoryError):
                break
            except OSError as error:
                raise BadDataError(f"{shown!r} can't be looked at: {error.strerror}") from None
        return self.root / Path(text)


def _split(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--allow-command can't be split into words: {error}") from None
    if not words:
        raise UsageError("--allow-command is empty")
    if len(words) == 1 and len(words[0].split()) > 1:
        # rpl would split such a word, and run what nobody allowed.
        raise UsageError(f"--allow-command is one word with spaces: {words[0]!r}")
    return words
