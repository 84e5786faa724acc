"""Instruction sets by their names, such as ``amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def isa_difference(wanted: str, given: str) -> str | None:
    """Why what is made for ``wanted`` does not run on ``given``; ``None`` if it does, or none is named.

    The rule of native/replay/runtime/isa.cpp: the same processor, and each feature that ``wanted`` names has
    the same setting.
    """
    if not wanted or not given:
        return None
    processor, features = _target(wanted)
    other, others = _target(given)
    if processor != other:
        return f"{processor} and {other}"
    for name, sign in features.items():
        if others.get(name) != sign:
            return f"{name}{sign} and {name + others[name] if name in others else 'no ' + name}"
    return None


def isa_problem(parts: Iterable[tuple[str, str]], agent: str) -> str | None:
    """The first of the parts of a launch (what it is, its instruction set) that is not for ``agent``."""
    for what, isa in parts:
        if (difference := isa_difference(isa, agent)) is not None:
            return f"{what} is for {isa}, and this runs {agent} only ({difference})"
    return None


def _target(name: str) -> tuple[str, dict[str, str]]:
    """Processor and features. ``gfx9-4-generic`` has dashes of its own, behind the two before it."""
    _, separator, rest = name.partition("--")
    if not separator:
        first, colon, features = name.partition(":")
        rest = first.rpartition("-")[2] + colon + features
    processor, *features_of = rest.split(":")
    return processor, {one[:-1]: one[-1] for one in features_of if one}
