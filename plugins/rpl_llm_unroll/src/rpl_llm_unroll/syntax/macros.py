"""Macros that a source file defines: their replacement text, and whether it is the only possible one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_llm_unroll.syntax.tree import ancestors, line_of, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_WORD = re.compile(r"[A-Za-z_]\w*")
_NOT_CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
_CONDITIONS = frozenset({"preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef"})


@frozen
class Macro:
    """One ``#define``. ``conditional``: it stands inside ``#if``, so the build decides whether it holds."""

    name: str
    replacement: str
    line: int
    function_like: bool
    conditional: bool

    def words(self) -> tuple[str, ...]:
        """Identifiers and keywords of the replacement, without those in strings and comments."""
        return tuple(_WORD.findall(_NOT_CODE.sub(" ", self.replacement)))


@frozen
class Macros:
    """All definitions of a file by name; ``undefined`` holds names that an ``#undef`` removes."""

    definitions: dict[str, tuple[Macro, ...]]
    undefined: frozenset[str]

    def of(self, name: str) -> tuple[Macro, ...]:
        return self.definitions.get(name, ())

    def only(self, name: str) -> Macro | None:
        """The definition, if there is exactly one, unconditional, object-like and never removed."""
        found = self.of(name)
        if len(found) != 1 or name in self.undefined:
            return None
        return None if found[0].conditional or found[0].function_like else found[0]


def find_macros(root: Node) -> Macros:
    definitions: dict[str, list[Macro]] = {}
    undefined = set()
    for node in walk(root):
        if node.type in {"preproc_def", "preproc_function_def"}:
            macro = _macro(node)
            definitions.setdefault(macro.name, []).append(macro)
        elif node.type == "preproc_call" and text_of(node).lstrip("# \t").startswith("undef"):
            undefined.update(_WORD.findall(text_of(node))[1:2])
    return Macros({name: tuple(found) for name, found in definitions.items()}, frozenset(undefined))


def _macro(node: Node) -> Macro:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    return Macro(
        name=text_of(name) if name is not None else "",
        replacement=text_of(value).replace("\\\n", " ").strip() if value is not None else "",
        line=line_of(node),
        function_like=node.type == "preproc_function_def",
        conditional=any(parent.type in _CONDITIONS for parent in ancestors(node)),
    )
