"""Import exactly one plugin module, through stevedore, check the API number it states, and register it.

stevedore 5 re-raises ``AssertionError``, lets ``SystemExit`` pass, resolves name clashes on its own and
keeps a cache in the user's home; hence one driver per plugin over one given entry point, inside our own
boundary.
"""

from __future__ import annotations

import inspect
import sys
from contextlib import redirect_stdout
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pluggy import PluginValidationError
from stevedore.driver import DriverManager

from rpl_core import RPL_API
from rpl_core.interfaces.options import PluginSetting
from rpl_core.plugins.boundary import one_line, traceback_of
from rpl_core.plugins.discovery import GROUP, PluginStatus
from rpl_core.plugins.trial import why_unusable
from rpl_core.process_start import is_ctrl_c
from rpl_core.values import frozen

if TYPE_CHECKING:
    from pluggy import PluginManager

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


# Register one module with pluggy, or say in one line why its hooks do not match the specs.
#
# pluggy itself checks argument names. Checked here besides: misspelt hooks, forgotten markers, and what
# would let a plugin escape the documented order or never receive an argument.

_ORDERING_OPTIONS = ("tryfirst", "trylast", "wrapper", "hookwrapper")


def register(manager: PluginManager, module: ModuleType, name: str) -> str | None:
    """Register ``module`` as ``name``; returns the reason when it was refused and is not registered."""
    other = manager.get_name(module)
    if other is not None:
        return f"the same module is already registered as {other!r}"
    try:
        reason = _contract_violation(manager, module)
        if reason is not None:
            return reason
        manager.register(module, name=name)
        reason = _unknown_hook(manager, module)
    except PluginValidationError as error:
        reason = " ".join(str(error).split())
    except Exception as error:  # noqa: BLE001 - the plugin boundary: module attributes may be anything
        reason = one_line(error)
    if reason is not None and manager.has_plugin(name):
        manager.unregister(name=name)
    return reason


def implemented_hooks(manager: PluginManager, module: object) -> tuple[str, ...]:
    """The names of the known hooks that a registered module implements, sorted."""
    callers = manager.get_hookcallers(module) or []
    return tuple(sorted(caller.name for caller in callers if caller.has_spec()))


def spec_names(manager: PluginManager) -> tuple[str, ...]:
    """All hooks that have a spec, sorted."""
    return tuple(sorted(n for n, c in vars(manager.hook).items() if not n.startswith("_") and c.has_spec()))


def _contract_violation(manager: PluginManager, module: ModuleType) -> str | None:
    known = spec_names(manager)
    for attribute in sorted(dir(module)):
        options = manager.parse_hookimpl_opts(module, attribute)
        function = getattr(module, attribute, None)
        if options is None:
            if attribute in known and inspect.isfunction(function):
                return f"{attribute} is not marked with @hookimpl, so it would never be called"
            continue
        reason = _option_violation(options) or _signature_violation(function)
        if reason is not None:
            return f"{options.get('specname') or attribute}: {reason}"
    return None


def _unknown_hook(manager: PluginManager, module: ModuleType) -> str | None:
    """What ``check_pending`` finds in the plugin just registered, with a guess at what was meant."""
    try:
        manager.check_pending()
    except PluginValidationError:
        callers = manager.get_hookcallers(module) or []
        unknown = [
            caller.name
            for caller in callers
            if not caller.has_spec() and not all(found.optionalhook for found in caller.get_hookimpls())
        ]
        from difflib import get_close_matches

        hook = min(unknown)
        similar = get_close_matches(hook, spec_names(manager), n=1)
        return f"unknown hook {hook}" + (f"; did you mean {similar[0]}?" if similar else "")
    return None


def _option_violation(options: Any) -> str | None:
    for option in _ORDERING_OPTIONS:
        if options.get(option):
            return f"{option}=True is not supported: plugins are called in the order of their names"
    return None


def _signature_violation(function: Any) -> str | None:
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return "hooks are called synchronously, but this one is async"
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
            return f"argument {parameter.name!r} is not a plain parameter, so it would never be passed"
        if parameter.default is not inspect.Parameter.empty:
            return f"argument {parameter.name!r} has a default, so it would never be passed"
    return None
