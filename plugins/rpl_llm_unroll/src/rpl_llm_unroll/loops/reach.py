"""Every name that a loop may run into: its own, and those behind macros and functions of the same file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_llm_unroll.syntax.tree import line_of, text_of, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from rpl_llm_unroll.loops.source_loop import SourceLoop
    from rpl_llm_unroll.syntax.source_file import SourceFile

_NAMES = frozenset({"identifier", "type_identifier", "field_identifier", "namespace_identifier"})


@frozen
class Mention:
    """``line`` lies inside the loop; ``via`` names the functions and macros on the way, nearest first.

    ``called`` is true for call expressions; of a macro's text nobody can tell, so it is true there too.
    """

    name: str
    line: int
    called: bool
    method: bool
    is_type: bool = False
    via: tuple[str, ...] = ()

    def describe(self) -> str:
        """For example ``__syncthreads (through step, SYNC)``."""
        return self.name + (f" (through {', '.join(self.via)})" if self.via else "")


def mentions_of(loop: SourceLoop, file: SourceFile) -> tuple[Mention, ...]:
    """All mentions in source order. Overloads count together, and so do all definitions of a macro."""
    lambdas = _lambdas(loop.kernel.body)
    found: list[Mention] = []
    visited: set[tuple[str, bool]] = set()
    # Overloaded operators leave no name behind where they are used.
    operators = [name for name in file.functions if name.startswith("operator")]
    waiting: list[tuple[Node, int | None, tuple[str, ...]]] = [(loop.node, None, ())]
    waiting += [(f, loop.line, (name,)) for name in sorted(operators) for f in file.functions[name]]
    while waiting:
        node, line, via = waiting.pop(0)
        for mention in _in_node(node, line, via):
            found.append(mention)
            # A declaration runs the constructor and destructor of its type.
            follow = mention.called or mention.is_type
            if (mention.name, follow) in visited:
                continue
            visited.add((mention.name, follow))
            inner = (*via, mention.name)
            found += _in_macros(mention, file, visited, waiting)
            if follow:
                destructors = file.functions.get(f"~{mention.name}", ())
                waiting += [(body, mention.line, (*via, f"~{mention.name}")) for body in destructors]
                bodies = [*file.functions.get(mention.name, ()), *lambdas.get(mention.name, ())]
                waiting += [(body, mention.line, inner) for body in bodies]
    return tuple(found)


def _in_node(node: Node, line: int | None, via: tuple[str, ...]) -> Iterator[Mention]:
    declared = _declared_name(node)
    for inner in walk(node):
        if inner.type in _NAMES and inner.id != declared:
            called, method = _use(inner)
            is_type = inner.type == "type_identifier"
            yield Mention(text_of(inner), line or line_of(inner), called, method, is_type, via)


def _in_macros(
    mention: Mention,
    file: SourceFile,
    visited: set[tuple[str, bool]],
    waiting: list[tuple[Node, int | None, tuple[str, ...]]],
) -> list[Mention]:
    found: list[Mention] = []
    pending = [(mention.name, mention.via)]
    while pending:
        name, via = pending.pop(0)
        for macro in file.macros.of(name):
            through = (*via, name)
            for word in macro.words():
                found.append(Mention(word, mention.line, called=True, method=False, via=through))
                if (word, True) in visited:
                    continue
                visited.add((word, True))
                pending.append((word, through))
                waiting += [(body, mention.line, (*through, word)) for body in file.functions.get(word, ())]
    return found


def _use(name: Node) -> tuple[bool, bool]:
    """Whether the name is called, and whether as a method."""
    node: Node = name
    method = False
    while node.parent is not None and node.parent.type in {
        "template_function",
        "template_method",
        "qualified_identifier",
        "field_expression",
        "dependent_name",
    }:
        parent = node.parent
        if parent.type == "field_expression":
            if parent.child_by_field_name("field") != node:
                return False, False
            method = True
        elif parent.type != "dependent_name" and parent.child_by_field_name("name") != node:
            return False, False
        node = parent
    outer = node.parent
    called = (
        outer is not None
        and outer.type == "call_expression"
        and outer.child_by_field_name("function") == node
    )
    return called, called and method


def _declared_name(function: Node) -> int | None:
    node = function.child_by_field_name("declarator") if function.type == "function_definition" else None
    while node is not None and node.type not in _NAMES:
        node = node.child_by_field_name("declarator") or node.child_by_field_name("name")
    return None if node is None else node.id


def _lambdas(body: Node) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in walk(body):
        if node.type != "init_declarator":
            continue
        name, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
        if name is not None and value is not None and value.type == "lambda_expression":
            found.setdefault(text_of(name), []).append(value)
    return found
