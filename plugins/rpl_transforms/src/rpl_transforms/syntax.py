"""HIP and CUDA source as a tree: parsing by tree-sitter's CUDA grammar, walking, macros, declarations.

A parse says where things stand. What an edit means is judged by the user's compiler, never by this parse.
Trees are walked without recursion, so that no source is too deep.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import tree_sitter_cuda
from tree_sitter import Language, Parser

from rpl_core.values import frozen

if TYPE_CHECKING:
    from tree_sitter import Node


@lru_cache(maxsize=1)
def _language() -> Language:
    return Language(tree_sitter_cuda.language())


def parse(text: bytes) -> Node:
    """The root node. A source with syntax errors gives a tree with error nodes, never an exception."""
    return Parser(_language()).parse(text).root_node


def walk(node: Node, *, skip: Collection[str] = ()) -> Iterator[Node]:
    """``node`` and everything below it in source order; nodes of a type in ``skip`` are left out whole."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if current.type in skip and current.id != node.id:
            continue
        yield current
        waiting.extend(reversed(current.children))


def text_of(node: Node | None) -> str:
    """The source text of a node, empty of none; bytes that are not UTF-8 are replaced."""
    return "" if node is None else (node.text or b"").decode("utf-8", "replace")


def line_of(node: Node) -> int:
    """The line a node begins on, counted from 1."""
    return node.start_point[0] + 1


def ancestors(node: Node) -> Iterator[Node]:
    """Parents from the nearest to the root."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def tokens(node: Node) -> tuple[str, ...]:
    """The leaves as text, comments left out: equal for two sources that differ in layout only."""
    return tuple(text_of(n) for n in walk(node, skip=("comment",)) if not n.children and n.type != "comment")


def first_error(node: Node) -> Node | None:
    """The first syntax error at or below ``node``, or ``None``."""
    if not node.has_error:
        return None
    return next((n for n in walk(node) if n.is_error or n.is_missing), node)


_BLANK = re.compile(r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|//[^\n]*|/\*.*?\*/|\\\r?\n|\s+', re.DOTALL)


def one_line(text: bytes) -> str:
    """A part of a source without comments, on one line."""
    return _BLANK.sub(lambda found: found[1] or " ", text.decode("utf-8", "replace")).strip()


# Macros that a source file defines, by their replacement texts.

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


# Names that a function or file declares, with type and initial value as far as the source shows them.

_DECLARING = frozenset(
    {"declaration", "parameter_declaration", "optional_parameter_declaration", "field_declaration"}
)
_INNER_SCOPES = frozenset(
    {
        "function_definition",
        "struct_specifier",
        "class_specifier",
        "lambda_expression",
        "parameter_list",
        "template_parameter_list",
    }
)
_INDIRECT = frozenset(
    {"pointer_declarator", "reference_declarator", "array_declarator", "function_declarator"}
)


@frozen(eq=False)
class Declared:
    """``indirect``: a pointer, reference, array or function, so that its value may change elsewhere."""

    name: str
    node: Node
    type_text: str
    specifiers: frozenset[str]
    value: Node | None
    indirect: bool
    template: bool


def declared_names(scope: Node, *, skip: Collection[str] = ()) -> tuple[Declared, ...]:
    """Every variable, parameter and template parameter declared at or below ``scope``.

    Nodes of a type in ``skip`` are not entered.
    """
    declared = []
    for node in walk(scope, skip=skip):
        if node.type in _DECLARING:
            declared.extend(_of_declaration(node))
    return tuple(declared)


def file_scope_names(root: Node) -> tuple[Declared, ...]:
    """What the file declares outside functions, classes and parameter lists."""
    return declared_names(root, skip=_INNER_SCOPES)


def _of_declaration(node: Node) -> list[Declared]:
    kind = node.child_by_field_name("type")
    specifiers = frozenset(
        text_of(child)
        for child in node.children
        if child.type in {"type_qualifier", "storage_class_specifier"} or child.type.startswith("__")
    )
    template = node.parent is not None and node.parent.type == "template_parameter_list"
    value = node.child_by_field_name("default_value")
    declared = []
    for declarator in node.children_by_field_name("declarator"):
        name, own_value, indirect = _unwrap(declarator)
        if name is not None:
            type_text = text_of(kind) if kind is not None else ""
            declared.append(
                Declared(text_of(name), node, type_text, specifiers, own_value or value, indirect, template)
            )
    return declared


def _unwrap(declarator: Node) -> tuple[Node | None, Node | None, bool]:
    value, indirect = None, False
    node: Node | None = declarator
    while node is not None and node.type not in {"identifier", "field_identifier"}:
        if node.type == "init_declarator":
            value = node.child_by_field_name("value")
        indirect = indirect or node.type in _INDIRECT
        inner = node.child_by_field_name("declarator")
        if inner is None:  # references and attributed declarators keep theirs without a field name
            inner = next(
                (c for c in node.named_children if "declarator" in c.type or c.type == "identifier"), None
            )
        node = inner
    return node, value, indirect
