"""A parsed source file with what several guards ask of it, computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_llm_unroll.syntax.declarations import Declared, declared_names, file_scope_names
from rpl_llm_unroll.syntax.kernels import KernelNode, find_kernels, function_name
from rpl_llm_unroll.syntax.macros import Macros, find_macros
from rpl_llm_unroll.syntax.tree import parse, text_of, tokens, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_TYPE_DEFINITIONS = frozenset(
    {
        "struct_specifier",
        "class_specifier",
        "alias_declaration",
        "type_parameter_declaration",
        "enum_specifier",
        "type_definition",
    }
)
_ALIASES = frozenset({"alias_declaration", "type_definition"})


@frozen(eq=False)
class SourceFile:
    """``functions`` maps a name to all its definitions in the file, overloads and methods included.

    ``declared`` is what stands at file scope; ``types`` names the types that the file defines;
    ``volatile`` and ``dynamic_lds`` name variables and members declared so anywhere in it.
    """

    text: bytes
    root: Node
    macros: Macros
    kernels: tuple[KernelNode, ...]
    functions: dict[str, tuple[Node, ...]]
    declared: tuple[Declared, ...]
    types: frozenset[str]
    volatile: frozenset[str]
    dynamic_lds: frozenset[str]


def read_source_file(text: bytes) -> SourceFile:
    """Parse ``text`` and index it. Never fails: errors stay in the tree."""
    root = parse(text)
    macros = find_macros(root)
    functions: dict[str, list[Node]] = {}
    types: set[str] = set()
    volatile_types: set[str] = set()
    for node in walk(root):
        if node.type == "function_definition":
            functions.setdefault(function_name(node), []).append(node)
        elif node.type in _TYPE_DEFINITIONS:
            named = {text_of(child) for child in node.children if child.type == "type_identifier"}
            types |= named
            if node.type in _ALIASES and "volatile" in tokens(node):
                volatile_types |= named
    everything = declared_names(root)
    return SourceFile(
        text=text,
        root=root,
        macros=macros,
        kernels=find_kernels(root, macros),
        functions={name: tuple(nodes) for name, nodes in functions.items()},
        declared=file_scope_names(root),
        types=frozenset(types),
        volatile=frozenset(d.name for d in everything if _is_volatile(d, volatile_types)),
        dynamic_lds=frozenset(d.name for d in everything if {"extern", "__shared__"} <= d.specifiers),
    )


def _is_volatile(declared: Declared, volatile_types: set[str]) -> bool:
    return "volatile" in declared.specifiers or declared.type_text in volatile_types
