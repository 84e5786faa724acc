"""Show hook calls on stderr while they happen (``--trace-plugins`` or ``RPL_TRACE_PLUGINS=1``)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rpl_core.plugins.boundary import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pluggy import HookImpl, PluginManager, Result

_SHOWN_ITEMS = 8


def trace_hook_calls(manager: PluginManager) -> None:
    """Print each call, the plugin that answers it, and a summary of the answer, one line each."""
    manager.add_hookcall_monitoring(_before, _after)


def _before(hook_name: str, hook_impls: Sequence[HookImpl], kwargs: Mapping[str, object]) -> None:
    arguments = ", ".join(f"{name}={type(value).__name__}" for name, value in sorted(kwargs.items()))
    for implementation in hook_impls:
        _print(f"call {hook_name}({arguments}) in {implementation.plugin_name}")


def _after(
    outcome: Result[Any], hook_name: str, hook_impls: Sequence[HookImpl], _arguments: Mapping[str, object]
) -> None:
    names = ", ".join(implementation.plugin_name for implementation in hook_impls)
    if outcome.exception is not None:
        _print(f"raised {hook_name} in {names}: {one_line(outcome.exception)}")
        return
    for answer in outcome.get_result():
        _print(f"answer {hook_name} from {names}: {_summary(answer)}")


def _summary(answer: Any) -> str:
    if not isinstance(answer, tuple):
        return type(answer).__name__
    shown = ", ".join(_label(item) for item in answer[:_SHOWN_ITEMS])
    return f"{len(answer)} of {shown}{', ...' * (len(answer) > _SHOWN_ITEMS)}" if answer else "empty tuple"


def _label(item: Any) -> str:
    name = getattr(item, "name", None) or getattr(item, "id", None)
    return f"{type(item).__name__} {name}" if isinstance(name, str) else type(item).__name__


def _print(text: str) -> None:
    printable = "".join(c if c.isprintable() else "?" for c in text)
    print(f"rpl-hook: {printable}", file=sys.stderr)
