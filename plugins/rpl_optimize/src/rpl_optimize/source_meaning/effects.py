"""What a function's events come to when calls are followed to their declarations.

The last word of a chain of calls is a builtin of the compiler, or a function without a body here. Both are
known by declaration: a builtin's name can be declared by nobody else. One that is declared to compute only
has no effect; of the others those are named here that touch nothing but the memory they are given. So a
builtin that nobody knows has an effect, and may be neither added nor lost.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

from rpl_core.values import frozen
from rpl_optimize.source_meaning.functions import Event, digest

if TYPE_CHECKING:
    from rpl_optimize.source_meaning.unit import Function, Unit

#: Declared to compute only, and yet they hand values from lane to lane (clang, BuiltinsAMDGPU).
_CROSS_LANE = re.compile(
    r"__builtin_amdgcn_(?:ds_b?permute\w*|ds_swizzle|mov_dpp\w*|update_dpp|read\w*lane|writelane|permlane\w*"
    r"|ballot\w*|inverse_ballot\w*|[fsu]?[if]?cmp\w*|wave_reduce\w*|set_inactive\w*|wqm\w*|strict_w\w+)"
)
#: Loads, stores and moves of memory, and mathematics that the device library defines.
_MEMORY = re.compile(
    r"__builtin_(?:mem(?:cpy|set|move)(?:_inline)?|nontemporal_(?:load|store)|addressof|expect\w*|object_size"
    r"|(?:sin|cos|pow|exp|log|sqrt|fma|f?abs|floor|ceil|trunc|round|fmin|fmax|copysign|ldexp|frexp)\w*)"
    r"|__builtin_amdgcn_(?:global|raw|struct)_(?!\w*atomic)\w*(?:load|store)\w*|__ocml_\w+"
    r"|mem(?:cpy|set|move)"
)


@frozen
class Step:
    """One event with an effect. ``label`` is for people, ``meaning`` is compared."""

    path: tuple[str, ...]
    label: str
    meaning: str
    #: Whether loads and stores may not be moved over it: all but exchange between lanes.
    orders: bool = True

    @property
    def compared(self) -> tuple[str, ...]:
        return (*self.path, self.meaning)

    def describe(self) -> str:
        around = [word.partition(" ")[0] for word in self.path if word != "head"]
        return self.label + (f" under {' and '.join(around)}" if around else "")


@attrs.define(eq=False)
class Effects:
    """Steps of functions of one unit. ``text`` is the edited source, for the words of its assembly."""

    unit: Unit
    text: bytes
    _known: dict[int, tuple[Step, ...]] = attrs.field(factory=dict)
    _open: set[int] = attrs.field(factory=set)

    def steps(self, events: tuple[Event, ...], *, own_text: bool = False) -> tuple[Step, ...]:
        """Events with an effect in order, and the jumps before the last of them."""
        found: list[Step] = []
        last = 0
        for event in events:
            if event.jump:
                found.append(Step(event.path, event.label, event.label))
                continue
            found += (steps := self._step(event, own_text=own_text))
            last = len(found) if steps else last
        return tuple(found[:last])

    def _step(self, event: Event, *, own_text: bool) -> list[Step]:
        if event.callee is not None:
            called = self.unit.function(event.callee)
            if called is None:  # a member variable
                return []
            return self._through(event, called)
        if event.type_name is not None:
            members = self.unit.special_members(event.type_name)
            return [step for one in members for step in self._through(event, one)]
        meaning = event.label
        if event.begin is not None and own_text:
            meaning += f" {digest(_statement(self.text, event.begin))}"
        return [Step(event.path, event.label, meaning)]

    def _through(self, event: Event, called: Function) -> list[Step]:
        meaning = self.meaning(called)
        if meaning is None:
            return []
        return [Step(event.path, called.name, f"{event.label} {meaning}", self._orders(called))]

    def _orders(self, called: Function) -> bool:
        if called.defined and not called.virtual:
            return any(step.orders for step in self._known.get(id(called), ()))
        return _CROSS_LANE.fullmatch(called.name) is None

    def meaning(self, called: Function) -> str | None:
        """``None`` where calling it has no effect but on the memory that it is given."""
        if called.virtual:
            return f"virtual {called.mangled}"
        if not called.defined:
            return None if _computes_only(called) else called.mangled or called.name
        if id(called) in self._open:
            return f"recursion {called.name}"
        if id(called) not in self._known:
            self._open.add(id(called))
            self._known[id(called)] = self.steps(called.events)
            self._open.discard(id(called))
        steps = self._known[id(called)]
        return digest([step.compared for step in steps]) if steps else None


def _computes_only(called: Function) -> bool:
    name = called.name
    if _CROSS_LANE.fullmatch(name):
        return False
    return called.harmless or _MEMORY.fullmatch(name) is not None


def _statement(text: bytes, begin: int) -> str:
    """The words of an assembly statement up to its semicolon outside of strings."""
    quoted = re.compile(rb'"(?:\\.|[^"\\])*"|[^";]+', re.DOTALL)
    words, at = [], begin
    while (match := quoted.match(text, at)) is not None:
        words.append(match[0])
        at = match.end()
    return b" ".join(b"".join(words).split()).decode("utf-8", "replace")
