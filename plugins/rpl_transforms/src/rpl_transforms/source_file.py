"""One source file: its kernels, its functions and who mentions whom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_transforms.syntax import (
    Declared,
    Macros,
    declared_names,
    file_scope_names,
    find_macros,
    line_of,
    parse,
    text_of,
    walk,
)

if TYPE_CHECKING:
    from tree_sitter import Node


_WRAPPERS = frozenset({"template_declaration", "linkage_specification"})
_SPELLED = frozenset({"identifier", "field_identifier"})


@frozen(eq=False)
class KernelNode:
    """``outer`` includes ``template <...>`` and ``extern "C"``; ``ordinal`` counts kernels of one name."""

    name: str
    ordinal: int
    function: Node
    outer: Node
    body: Node

    @property
    def line(self) -> int:
        return line_of(self.function)

    @property
    def parameters(self) -> Node | None:
        """The parameter list of the declarator that is followed by the body."""
        return parameters_of(self.function)

    @property
    def parameter_declarations(self) -> list[Node]:
        """The parameters that have a declaration, in order."""
        nodes = [] if self.parameters is None else self.parameters.named_children
        return [node for node in nodes if node.type == "parameter_declaration"]

    @property
    def plain_name(self) -> Node | None:
        """Where its name stands, if it is spelled out as ``__global__ ... name(...)`` without an error.

        A static member function of a class counts, too.
        """
        declarator = _function_declarator(self.function)
        name = None if declarator is None else declarator.child_by_field_name("declarator")
        spelled = any(child.type == "__global__" for child in self.function.children)
        return (
            name
            if spelled and name is not None and name.type in _SPELLED and not self.function.has_error
            else None
        )


def find_kernels(root: Node, macros: Macros) -> tuple[KernelNode, ...]:
    """Kernels with a body, in file order."""
    kernels: list[KernelNode] = []
    for node in walk(root, skip=("compound_statement",)):  # no kernel inside a function
        if node.type != "function_definition":
            continue
        body = node.child_by_field_name("body")
        if body is None or body.type != "compound_statement" or not _is_kernel(node, body, macros):
            continue
        name = function_name(node)
        ordinal = sum(kernel.name == name for kernel in kernels)
        kernels.append(KernelNode(name, ordinal, node, _outer(node), body))
    return tuple(kernels)


def function_name(function: Node) -> str:
    """The unqualified name; of a macro that makes the declarator, its first argument."""
    declarator = _function_declarator(function)
    if declarator is None:
        return ""
    name = declarator.child_by_field_name("declarator")
    if name is not None and name.type == "function_declarator":
        inner = name.child_by_field_name("parameters")
        return text_of(inner).strip("()").partition(",")[0].strip() if inner is not None else ""
    while name is not None and name.type in {"template_function", "qualified_identifier"}:
        name = name.child_by_field_name("name")
    return text_of(name) if name is not None else ""


def parameters_of(function: Node) -> Node | None:
    """The parameter list of a function definition."""
    declarator = _function_declarator(function)
    return None if declarator is None else declarator.child_by_field_name("parameters")


def _function_declarator(function: Node) -> Node | None:
    node = function.child_by_field_name("declarator")
    while node is not None and node.type != "function_declarator":
        node = node.child_by_field_name("declarator")
    return node


def _is_kernel(function: Node, body: Node, macros: Macros) -> bool:
    for node in walk(function):
        if node.start_byte >= body.start_byte:
            return False
        if node.type == "__global__":
            return True
        if node.type in {"identifier", "type_identifier"} and _makes_kernel(text_of(node), macros):
            return True
    return False


def _makes_kernel(word: str, macros: Macros) -> bool:
    waiting, seen = [word], {word}
    while waiting:
        words = macros.words(waiting.pop())
        if "__global__" in words:
            return True
        waiting += words - seen
        seen |= words
    return False


def _outer(function: Node) -> Node:
    node = function
    while node.parent is not None and node.parent.type in _WRAPPERS:
        node = node.parent
    return node


# A parsed source file with what is asked of it, computed once.

_TYPE_DEFINITIONS = frozenset(
    {
        *("struct_specifier", "class_specifier", "alias_declaration", "type_parameter_declaration"),
        *("enum_specifier", "type_definition"),
    }
)
_NAMES = frozenset({"identifier", "type_identifier", "field_identifier", "namespace_identifier"})


_INTEGER = re.compile(r"(0[xX][0-9a-fA-F']+|[0-9][0-9']*)[uUlL]{0,3}")


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

    def editable_kernels(self, name: str | None = None) -> tuple[KernelNode, ...]:
        """Kernels that are spelled out, in file order.

        Overloads are left out: a launch does not say which one it means.
        """
        plain = [kernel for kernel in self.kernels if kernel.plain_name is not None]
        names = [kernel.name for kernel in plain]
        return tuple(k for k in plain if names.count(k.name) == 1 and name in {None, k.name})

    def integer(self, expression: str) -> int | None:
        """The value of a literal, or of a name that one constant or macro of the file settles."""
        literal = _INTEGER.fullmatch(expression)
        if literal is not None:
            return int(literal[1].replace("'", ""), 0)
        values = [value for name, value in self._constants() if name == expression]
        value = _INTEGER.fullmatch(values[0]) if len(values) == 1 else None
        return None if value is None else int(value[1].replace("'", ""), 0)

    def _constants(self) -> Iterator[tuple[str, str]]:
        """Every name that is declared with a value or defined as a macro, and the text of the value."""
        for node in walk(self.root):
            if node.type == "init_declarator":
                yield text_of(node.child_by_field_name("declarator")), _constant_value(node)
            elif node.type == "parameter_declaration":
                yield text_of(node.child_by_field_name("declarator")), ""
            elif node.type == "preproc_def":
                value = text_of(node.child_by_field_name("value"))
                yield text_of(node.child_by_field_name("name")), value.strip()

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


def _constant_value(init: Node) -> str:
    """The value of a constant; of a variable an empty text, which settles nothing."""
    qualifiers = () if init.parent is None else init.parent.children
    words = {text_of(node) for node in qualifiers if node.type == "type_qualifier"}
    return text_of(init.child_by_field_name("value")).strip("{} ") if words & {"const", "constexpr"} else ""
