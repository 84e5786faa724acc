"""The error boundary around plugin code: whatever a plugin does, the caller gets one known exception.

Ctrl-C passes. What a plugin prints while it is called goes to stderr, because stdout
belongs to the result.
"""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import PluginError, RplError
from rpl_core.plugins.entry_points import distribution_of
from rpl_core.process_start import is_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def plugin_boundary(plugin: str, activity: str) -> Iterator[None]:
    """Run plugin code; anything unexpected becomes ``PluginError`` naming ``plugin`` and ``activity``.

    Expected failures (``RplError`` and its children) pass unchanged: they are the plugin's answer.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except RplError:
        raise
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        raise PluginError(plugin, activity, one_line(error)) from error


def one_line(error: BaseException) -> str:
    """An exception as one printable line: type and message, or what an exit means."""
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    if isinstance(error, RplError):
        return error.one_line()
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - the exception class is the plugin's own code
        message = "(its message can't be shown)"
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if isinstance(error, ModuleNotFoundError) and (package := distribution_of(str(error.name))):
        text = f"{text} (pip install {package})"
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def show_traceback(error: BaseException) -> None:
    """Print the traceback to stderr if the user asked for tracebacks (``RPL_TRACEBACK=1``)."""
    if os.environ.get("RPL_TRACEBACK") == "1":
        traceback.print_exception(error)


def traceback_of(error: BaseException) -> str:
    """The traceback as text, from the first frame of the plugin's own code, for ``rpl plugins info``."""
    frames = error.__traceback__
    while frames is not None and _is_machinery(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames)).rstrip("\n")


def _is_machinery(filename: str) -> bool:
    return filename.startswith(("<frozen importlib", str(Path(__file__).parent))) or any(
        part in {"stevedore", "importlib", "pluggy"} for part in Path(filename).parts
    )
