"""Kernel names as sources, profilers and symbol tables write them."""

from __future__ import annotations

import re

_LONGEST = 4096
_LENGTH = re.compile(r"[KL]?(\d{1,6})")


def source_name(recorded: str) -> str:
    """The function's own name: without return type, scope, template arguments and parameters.

    Understands names as they are, demangled and Itanium-mangled ones without substitutions in the name.
    """
    name = recorded[:_LONGEST].strip().removesuffix(".kd").removesuffix(" [clone .kd]")
    if name.startswith("_Z"):
        return _own_mangled(name) or name
    name = name.replace("(anonymous namespace)::", "")
    head = re.split(r"[<(\[]", name, maxsplit=1)[0].strip()
    return re.split(r"[\s:]+", head)[-1] or name


def is_instance(recorded: str, kernel: str) -> bool:
    """Whether a recorded name or a symbol is the source kernel ``kernel`` or an instance of it."""
    return source_name(recorded) == kernel


def _own_mangled(name: str) -> str | None:
    position = 3 if name.startswith("_ZN") else 2
    own = None
    while match := _LENGTH.match(name, position):
        position = match.end() + int(match.group(1))
        own = name[match.end() : position]
        if not name.startswith("_ZN"):
            break
        position = _behind_template(name, position)
    return own or None


def _behind_template(name: str, position: int) -> int:
    """Where the next scope begins behind template arguments of this one; the same place without them."""
    if not name.startswith("I", position):
        return position
    depth = 0
    for index in range(position, len(name)):
        depth += {"I": 1, "E": -1}.get(name[index], 0)
        if depth == 0:
            return index + 1
    return position
