"""Let a command see a built file in the place of the user's own, which stays as it is.

For what no word of the command names: the shared library of a Python driver, the program that a script
starts, a project's tree that its build files name by absolute paths.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rpl_core.errors import MissingError

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROGRAM: Final = str(Path(__file__).with_name("mount_and_run.py"))
_PROBE_S: Final = 20.0


def mounted(
    command: Sequence[str], pairs: Sequence[tuple[Path, Path]], place: Path | None = None
) -> tuple[str, ...]:
    """``command`` with the first of each pair at the second one's place.

    ``place``: the working directory to which the command's relative paths belong, wherever it is run.
    """
    words = [str(path) for pair in pairs for path in pair]
    known = () if place is None else ("--place", str(place))
    return (sys.executable, "-I", "-S", _PROGRAM, *known, *words, "--", *command)


@cache
def why_no_mounts() -> str | None:
    """Why this machine mounts nothing for a command of a user, or ``None``. Tried once."""
    with tempfile.TemporaryDirectory(prefix="rpl-mount-") as scratch:
        over, at = Path(scratch, "over"), Path(scratch, "at")
        over.write_text("seen", encoding="ascii")
        at.write_text("", encoding="ascii")
        command = mounted(("cat", str(at)), ((over, at),))
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PROBE_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.stdout == b"seen":
        return None
    return done.stderr.decode("utf-8", "replace").strip()[:200] or f"it ended with {done.returncode}"


def require_mounts(what: str, next_step: str) -> None:
    """``MissingError`` where ``what`` needs a mount and this machine allows none."""
    why = why_no_mounts()
    if why is not None:
        raise MissingError(
            f"{what}, and this machine lets nobody put a built file in its place",
            cause=why,
            next_step=next_step,
        )
