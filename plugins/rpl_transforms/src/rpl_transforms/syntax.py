"""The places of kernels and launches in a source, by tree-sitter's CUDA grammar.

What an edit means is judged by the user's compiler, never by this parse.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import tree_sitter_cuda
from tree_sitter import Language, Parser

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_INTEGER = re.compile(r"(0[xX][0-9a-fA-F']+|[0-9][0-9']*)[uUlL]{0,3}")


@lru_cache(maxsize=1)
def _parser() -> Parser:
    return Parser(Language(tree_sitter_cuda.language()))


@frozen(eq=False)
class Kernel:
    """A kernel definition; ``declarator`` is the one with its name and parameters."""

    name: str
    declarator: Node
    function: Node
    body: Node

    @property
    def line(self) -> int:
        return line_of(self.function)

    @property
    def name_node(self) -> Node:
        named = self.declarator.child_by_field_name("declarator")
        assert named is not None
        return named

    def parameters(self) -> Iterator[Node]:
        listed = self.declarator.child_by_field_name("parameters")
        nodes = () if listed is None else listed.named_children
        return (node for node in nodes if node.type == "parameter_declaration")


@frozen(eq=False)
class Launch:
    """A launch of a kernel: the expressions of its block size and of its arguments."""

    line: int
    block: str | None
    arguments: tuple[str, ...]


@frozen(eq=False)
class Source:
    """One parsed file."""

    root: Node

    @classmethod
    def read(cls, text: bytes) -> Source:
        return cls(_parser().parse(text).root_node)

    def kernels(self, name: str | None = None) -> tuple[Kernel, ...]:
        """Definitions in file order. Overloads are left out: a launch does not say which one it means."""
        functions = (node for node in walk(self.root) if node.type == "function_definition")
        found = [kernel for node in functions if (kernel := _kernel(node)) is not None]
        names = [kernel.name for kernel in found]
        return tuple(k for k in found if names.count(k.name) == 1 and name in {None, k.name})

    def launches(self, kernel: str) -> tuple[Launch, ...] | None:
        """All launches in the file; ``None`` where the name is used in another way as well."""
        found, seen = [], 0
        for node in walk(self.root):
            if node.type == "identifier" and text_of(node) == kernel:
                seen += 1
            elif node.type == "call_expression":
                launch = _launch(node, kernel)
                if launch is not None:
                    found.append(launch)
            elif node.type == "preproc_arg" and re.search(rf"\b{re.escape(kernel)}\b", text_of(node)):
                return None
        return tuple(found) if seen == len(found) + 1 else None  # one more: the definition

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
                yield _text(node, "declarator"), _constant_value(node)
            elif node.type == "parameter_declaration":
                yield _text(node, "declarator"), ""
            elif node.type == "preproc_def":
                yield _text(node, "name"), _text(node, "value").strip()


def walk(node: Node) -> Iterator[Node]:
    """``node`` and everything below it in source order."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(current.children))


def text_of(node: Node | None) -> str:
    return "" if node is None else (node.text or b"").decode("utf-8", "replace")


def line_of(node: Node) -> int:
    """Counted from 1."""
    return node.start_point[0] + 1


def _text(node: Node, field: str) -> str:
    return text_of(node.child_by_field_name(field))


def _constant_value(init: Node) -> str:
    """The value of a constant; of a variable an empty text, which settles nothing."""
    qualifiers = () if init.parent is None else init.parent.children
    words = {text_of(node) for node in qualifiers if node.type == "type_qualifier"}
    return _text(init, "value").strip("{} ") if words & {"const", "constexpr"} else ""


def _kernel(function: Node) -> Kernel | None:
    body, declarator = function.child_by_field_name("body"), function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    if body is None or body.type != "compound_statement" or declarator is None or function.has_error:
        return None
    name = declarator.child_by_field_name("declarator")
    is_kernel = any(child.type == "__global__" for child in function.children)
    if not is_kernel or name is None or name.type != "identifier":
        return None
    return Kernel(text_of(name), declarator, function, body)


def _launch(call: Node, kernel: str) -> Launch | None:
    function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    words = () if arguments is None else tuple(text_of(node) for node in arguments.named_children)
    syntax = next((child for child in call.children if child.type == "kernel_call_syntax"), None)
    if syntax is not None and function is not None and _plain_name(function) == kernel:
        shape = [text_of(node) for node in syntax.named_children]
        return Launch(line_of(call), shape[1] if len(shape) > 1 else None, words)
    if text_of(function) == "hipLaunchKernelGGL" and words and words[0].partition("<")[0] == kernel:
        return Launch(line_of(call), words[2] if len(words) > 2 else None, words[5:])
    return None


def _plain_name(function: Node) -> str:
    named = function.child_by_field_name("name") if function.type == "template_function" else function
    return text_of(named)
