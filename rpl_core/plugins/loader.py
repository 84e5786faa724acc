"""Import exactly one plugin module, through stevedore, and check the API number it states.

stevedore 5 re-raises ``AssertionError``, lets ``SystemExit`` pass, resolves name clashes on its own and
keeps a cache in the user's home; hence one driver per plugin over one given entry point, inside our own
boundary.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from stevedore.driver import DriverManager

from rpl_core import RPL_API
from rpl_core.interfaces.options import PluginSetting
from rpl_core.interrupts import is_ctrl_c
from rpl_core.plugins.boundary import one_line, traceback_of
from rpl_core.plugins.discovery import GROUP
from rpl_core.plugins.records import PluginStatus
from rpl_core.plugins.trial import why_unusable
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.plugins.discovery import Candidate


#: What a module calls the settings that it reads itself (``PluginSetting``).
STATED = "RPL_SETTINGS"
#: Written out, a longer one would fill the line (chosen).
_MOST_API = 1_000_000


@frozen
class Loaded:
    """An imported plugin module that states this core's ``RPL_API``."""

    module: ModuleType
    api: int


@frozen
class NotLoaded:
    """Why a module is of no use."""

    status: PluginStatus
    reason: str
    api: int | None = None
    traceback: str | None = None


if TYPE_CHECKING:
    _Driver = DriverManager[ModuleType]
else:
    _Driver = DriverManager  # older stevedore is not generic at run time


class _OneEntryPoint(_Driver):
    """A driver manager that knows one entry point instead of asking (and writing) stevedore's cache."""

    def __init__(self, entry_point: EntryPoint) -> None:
        self._only = entry_point
        super().__init__(entry_point.group, entry_point.name)

    def list_entry_points(self) -> list[EntryPoint]:
        return [self._only]


def load(candidate: Candidate) -> Loaded | NotLoaded:
    """Import ``candidate``; never raises except for Ctrl-C."""
    problem = candidate.malformed()
    if problem is not None:
        return NotLoaded(PluginStatus.INVALID, problem)
    held = why_unusable(candidate.distribution, candidate.version, candidate.target)
    if held is not None:
        return NotLoaded(PluginStatus.BROKEN, held)
    try:
        with redirect_stdout(sys.stderr):
            if candidate.is_development:
                _make_importable_from_here()
            return _checked(_OneEntryPoint(EntryPoint(candidate.name, candidate.target, GROUP)).driver)
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        return NotLoaded(PluginStatus.BROKEN, one_line(error), traceback=traceback_of(error))


def _checked(module: Any) -> Loaded | NotLoaded:
    api = vars(module).get("RPL_API")
    if api is None:
        return NotLoaded(
            PluginStatus.INCOMPATIBLE, f"the module states no RPL_API; this rpl offers RPL_API = {RPL_API}"
        )
    if type(api) is not int or not 0 <= api <= _MOST_API:
        return NotLoaded(PluginStatus.INCOMPATIBLE, "RPL_API is not a whole number that any rpl could offer")
    if api != RPL_API:
        reason = f"written for RPL_API = {api}; this rpl offers {RPL_API}"
        if api < RPL_API:
            reason += "; what to change: `rpl docs plugins/migration`"
        return NotLoaded(PluginStatus.INCOMPATIBLE, reason, api=api)
    stated = vars(module).get(STATED, ())
    if type(stated) is not tuple or not all(type(setting) is PluginSetting for setting in stated):
        return NotLoaded(PluginStatus.INVALID, f"{STATED} is no tuple of PluginSetting", api=api)
    return Loaded(module, api)


def _make_importable_from_here() -> None:
    # A console script does not search the working directory; ``-p module`` is the user's explicit wish.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
