"""Macros that a source file defines, by their replacement texts."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_llm_unroll.syntax.tree import text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_WORD = re.compile(r"[A-Za-z_]\w*")
_NOT_CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)


@frozen
class Macros:
    """``replacements`` maps a name to the texts of all its definitions, whatever the build chooses."""

    replacements: dict[str, tuple[str, ...]]

    def of(self, name: str) -> tuple[str, ...]:
        return self.replacements.get(name, ())

    def words(self, name: str) -> frozenset[str]:
        """Identifiers and keywords of its texts, without those in strings and comments."""
        return frozenset(word for text in self.of(name) for word in _words(text))


def find_macros(root: Node) -> Macros:
    found: dict[str, list[str]] = {}
    for node in walk(root):
        if node.type in {"preproc_def", "preproc_function_def"}:
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            text = "" if value is None else text_of(value).replace("\\\n", " ").strip()
            found.setdefault("" if name is None else text_of(name), []).append(text)
    return Macros({name: tuple(texts) for name, texts in found.items()})


@cache
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(_NOT_CODE.sub(" ", text)))
