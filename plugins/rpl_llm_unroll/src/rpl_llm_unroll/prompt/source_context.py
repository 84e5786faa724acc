"""What of a source file a reader of one kernel needs: macros, types, constants and functions that it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.text.table import counted
from rpl_llm_unroll.syntax.kernels import function_name
from rpl_llm_unroll.syntax.tree import text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

    from rpl_llm_unroll.reply.model import Target

_WORDS = frozenset({"identifier", "type_identifier", "field_identifier", "namespace_identifier"})
_DEFINING = frozenset(
    {
        *("preproc_def", "preproc_function_def", "function_definition", "template_declaration"),
        *("struct_specifier", "class_specifier", "enum_specifier", "alias_declaration", "type_definition"),
        *("declaration", "static_assert_declaration"),
    }
)
_ALWAYS = frozenset({"preproc_include", "using_declaration"})
#: Longer functions are shown by their head: the kernel is what may change (chosen).
_LONGEST_FUNCTION = 40


def context_of(target: Target) -> str:
    """Definitions of the file that the kernel uses, directly or through others, in file order."""
    pieces = [n for n in _pieces(target.file.root) if not _holds(n, target.kernel.outer)]
    defined = [(piece, _names(piece)) for piece in pieces]
    wanted = _words(target.kernel.outer)
    kept: set[int] = {piece.id for piece, _ in defined if piece.type in _ALWAYS}
    while True:
        more = [p for p, names in defined if p.id not in kept and names & wanted]
        if not more:
            break
        for piece in more:
            kept.add(piece.id)
            wanted |= _words(piece)
    return "\n".join(_shown(piece) for piece, _ in defined if piece.id in kept)


def _pieces(root: Node) -> list[Node]:
    """Definitions at file or namespace scope, outermost first, in file order."""
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        if node.type in _DEFINING or node.type in _ALWAYS:
            found.append(node)
        elif node.type != "compound_statement":
            waiting.extend(reversed(node.children))
    return found


def _holds(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte


def _names(piece: Node) -> set[str]:
    """Names that a piece defines; over-complete for declarations, which costs a line at most."""
    if piece.type.startswith("preproc_"):
        name = piece.child_by_field_name("name")
        return {text_of(name)} if name is not None else set()
    functions = [n for n in walk(piece, skip=("compound_statement",)) if n.type == "function_definition"]
    if piece.type in {"function_definition", "template_declaration"} and functions:
        return {function_name(functions[0])}
    return {
        text_of(node)
        for node in walk(piece, skip=("compound_statement", "parameter_list", "template_parameter_list"))
        if node.type in {"identifier", "type_identifier"}
    }


def _words(piece: Node) -> set[str]:
    words = {text_of(n) for n in walk(piece) if n.type in _WORDS}
    for node in walk(piece):
        if node.type == "preproc_arg":  # the text of a macro is not parsed
            words |= set(_identifiers(text_of(node)))
    return words


def _identifiers(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()


def _shown(piece: Node) -> str:
    text = text_of(piece).rstrip()
    body = next((n for n in walk(piece) if n.type == "compound_statement"), None)
    if body is None or text.count("\n") < _LONGEST_FUNCTION:
        return text + (";" if piece.type in {"struct_specifier", "class_specifier", "enum_specifier"} else "")
    head = (piece.text or b"")[: body.start_byte - piece.start_byte].decode("utf-8", "replace").rstrip()
    return f"{head};  // {counted(text.count(chr(10)) + 1, 'line')}, body left out"
