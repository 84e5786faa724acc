"""A parsed source file with what is asked of it, computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_llm_unroll.syntax.declarations import Declared, declared_names, file_scope_names
from rpl_llm_unroll.syntax.kernels import KernelNode, find_kernels, function_name
from rpl_llm_unroll.syntax.macros import Macros, find_macros
from rpl_llm_unroll.syntax.tree import parse, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_TYPE_DEFINITIONS = frozenset(
    {
        *("struct_specifier", "class_specifier", "alias_declaration", "type_parameter_declaration"),
        *("enum_specifier", "type_definition"),
    }
)
_NAMES = frozenset({"identifier", "type_identifier", "field_identifier", "namespace_identifier"})


@frozen(eq=False)
class SourceFile:
    """``functions`` maps a name to all its definitions in the file, overloads and methods included.

    ``declared`` is what stands at file scope; ``types`` names the types that the file defines,
    ``dynamic_lds`` variables declared so anywhere in it. ``mentioned_by`` maps a name to the
    functions and macros whose text has it.
    """

    text: bytes
    root: Node
    macros: Macros
    kernels: tuple[KernelNode, ...]
    functions: dict[str, tuple[Node, ...]]
    declared: tuple[Declared, ...]
    types: frozenset[str]
    dynamic_lds: frozenset[str]
    mentioned_by: dict[str, frozenset[str]]
    words: dict[int, frozenset[str]]  # by a function's node

    def reached_by(self, function: Node) -> tuple[Node, ...]:
        """Other functions of the file, by the names that this one and those mention."""
        kernels = {kernel.function.id for kernel in self.kernels}
        nodes: dict[int, Node] = {}
        seen: set[str] = set()
        waiting = [function]
        while waiting:
            node = waiting.pop()
            words = (self.words[node.id] if node.id in self.words else words_in(node)) - seen
            while words:  # macros lead to macros
                seen |= words
                more = [f for word in words for f in self.functions.get(word, ()) if f.id not in nodes]
                waiting += more
                nodes |= {one.id: one for one in more}
                words = frozenset(w for word in words for w in self.macros.words(word)) - seen
        return tuple(node for node in nodes.values() if node.id not in kernels)


def read_source_file(text: bytes) -> SourceFile:
    """Parse ``text`` and index it. Never fails: errors stay in the tree."""
    root = parse(text)
    macros = find_macros(root)
    functions: dict[str, list[Node]] = {}
    types: set[str] = set()
    lambdas: dict[str, list[Node]] = {}
    for node in walk(root):
        if node.type == "function_definition":
            functions.setdefault(function_name(node), []).append(node)
        elif node.type == "init_declarator" and any(c.type == "lambda_expression" for c in node.children):
            lambdas.setdefault(text_of(node.children[0]), []).append(node)
        elif node.type in _TYPE_DEFINITIONS:
            types |= {text_of(child) for child in node.children if child.type == "type_identifier"}
    by_node = {
        node.id: words_in(node) for nodes in (*functions.values(), *lambdas.values()) for node in nodes
    }
    return SourceFile(
        text=text,
        root=root,
        macros=macros,
        kernels=find_kernels(root, macros),
        functions={name: tuple(nodes) for name, nodes in functions.items()},
        declared=file_scope_names(root),
        types=frozenset(types),
        dynamic_lds=frozenset(
            d.name for d in declared_names(root) if {"extern", "__shared__"} <= d.specifiers
        ),
        mentioned_by=_mentions({**lambdas, **functions}, macros, by_node),
        words=by_node,
    )


def _mentions(
    functions: dict[str, list[Node]], macros: Macros, words: dict[int, frozenset[str]]
) -> dict[str, frozenset[str]]:
    mentions: dict[str, set[str]] = {}
    for name, nodes in functions.items():
        for word in {word for node in nodes for word in words[node.id]}:
            # Whoever names a class may run its destructor.
            mentions.setdefault(word, set()).add(name.removeprefix("~"))
    for name in macros.replacements:
        for word in macros.words(name):
            mentions.setdefault(word, set()).add(name)
    return {word: frozenset(names) for word, names in mentions.items()}


def words_in(node: Node) -> frozenset[str]:
    """Every name in a part of the source."""
    return frozenset(text_of(inner) for inner in walk(node) if inner.type in _NAMES)
