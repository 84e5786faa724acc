"""Register one module with pluggy, or say in one line why its hooks do not match the specs.

pluggy itself checks argument names. Checked here besides: misspelt hooks, forgotten markers, and what
would let a plugin escape the documented order or never receive an argument.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from pluggy import PluginValidationError

from rpl_core.plugins.boundary import one_line

if TYPE_CHECKING:
    from types import ModuleType

    from pluggy import PluginManager

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
