"""Kernel names as the user wants to read them, the same in every table and sentence about a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.text import readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rpl_core.model.trace import Trace

__all__ = ["linker_names", "names_like", "shown_names"]

#: Names of other things than kernels stay as they are.
_MANGLED = "_Z"


def shown_names(
    names: Iterable[str], form: str = "short", symbols: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Recorded name -> printable name in ``form``: "short", "full" (demangled) or "mangled".

    ``symbols`` are linker's names as far as they are known. Different names read differently in every form;
    short ones depend on all of ``names``: give those of a whole document.
    """
    recorded = list(dict.fromkeys(names))
    if form == "mangled":
        known = symbols or {}
        return {name: readable(known.get(name, name)) for name in recorded}
    try:
        from rpl_codeobject.kernel_names import short_names
    except ModuleNotFoundError:  # rpl-codeobject was taken away: the rest still shows something
        return {name: readable(name) for name in recorded}
    full = _demangled(recorded)
    if form == "full":
        return {name: readable(full[name]) for name in recorded}
    short = short_names(full.values())
    return {name: readable(short[full[name]] or full[name]) for name in recorded}


def _demangled(names: list[str]) -> dict[str, str]:
    """By recorded name; a name whose demangled form is recorded too, or taken, stays as it is."""
    mangled = [name for name in names if name.startswith(_MANGLED)]
    if not mangled:
        return {name: name for name in names}
    from rpl_codeobject.demangle import demangled

    found = demangled(mangled)
    taken = set(names)
    full = {}
    for name in names:
        text = found.get(name, name)
        full[name] = name if text in taken else text
        taken.add(full[name])
    return full


def names_like(part: str, names: Sequence[str]) -> list[str]:
    """The recorded names that ``part`` can mean: a whole name in any form, else a part of one."""
    shown = shown_names(names)
    return (
        [name for name in names if name == part]
        or [name for name in names if shown[name] == part]
        or [name for name in names if part in name or part in shown[name]]
    )


def linker_names(traces: Iterable[Trace]) -> dict[str, str]:
    """Recorded name -> linker's name, where there is one that differs."""
    found: dict[str, set[str]] = {}
    for kernel in (kernel for trace in traces for kernel in trace.kernels):
        if kernel.symbol and kernel.symbol != kernel.name:
            found.setdefault(kernel.name, set()).add(kernel.symbol)
    return {name: symbols.pop() for name, symbols in found.items() if len(symbols) == 1}
