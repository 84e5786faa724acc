"""Both forms of unrolling: a pragma in front of the loop, or the body repeated in the source.

Copies have the original loop behind them for the remainder. The counter moves between them just as the
loop's head would move it, so that every iteration sees the value it always saw. ::

    { int i = 0;
      for (; <at least N iterations are left>; i += s) { BODY i += s; BODY ... }
      for (; i < n; i += s) BODY }
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_llm_unroll.loops.counted import Counted, written_name
from rpl_llm_unroll.syntax.tree import text_of, walk
from rpl_optimize.interfaces.transformation import Edit

if TYPE_CHECKING:
    from tree_sitter import Node

    from rpl_llm_unroll.loops.view import LoopView


def line_start(text: bytes, position: int) -> int:
    """Where the line of ``position`` begins."""
    return text.rfind(b"\n", 0, position) + 1


def indentation(text: bytes, position: int) -> bytes:
    """The blanks that open the line of ``position``."""
    start = line_start(text, position)
    line = text[start:position]
    return line[: len(line) - len(line.lstrip(b" \t"))]


def newline(text: bytes, position: int) -> bytes:
    """The line end used around ``position``."""
    start = line_start(text, position)
    end = text.find(b"\n", position)
    uses_crlf = text[max(0, start - 2) : start] == b"\r\n" or (end > 0 and text[end - 1 : end] == b"\r")
    return b"\r\n" if uses_crlf else b"\n"


def pragma_edit(view: LoopView, factor: int) -> Edit:
    """One insertion; nothing of the source is replaced."""
    text, begin = view.file.text, view.loop.node.start_byte
    start, indent, end = line_start(text, begin), indentation(text, begin), newline(text, begin)
    pragma = b"#pragma unroll %d" % factor
    if text[start:begin].strip(b" \t"):  # something stands before the loop on its line
        return Edit(begin, begin, end + indent + pragma + end + indent)
    return Edit(begin, begin, pragma + end + indent)


def explicit_problem(view: LoopView) -> str | None:
    """Why the body can't simply be repeated, or ``None``."""
    form = view.form
    if not isinstance(form, Counted):
        return "the loop does not count"
    body = view.loop.body
    if any(n.type == "continue_statement" for n in walk(body, skip=("lambda_expression",))):
        return "continue would skip the copies that follow"
    if any(n.type == "comment" and text_of(n).startswith("//") for n in _head(view)):
        return "a line comment stands in the loop's head"
    if body.type == "declaration":
        return "the body is a declaration"
    if view.trips is not None:
        return None
    if form.step is None or form.relation not in {"<", ">"}:
        return "the number of iterations left can't be computed without overflow"
    if form.bound.type != "identifier" or not _is_plain(text_of(form.bound), form.type_text, view):
        return f"the bound is not a plain local variable of type {form.type_text}"
    return None


def _is_plain(name: str, type_text: str, view: LoopView) -> bool:
    """Whether ``name`` is one local value that nothing else can reach: no macro, global, alias, reference."""
    found = [d for d in view.declared if d.name == name]
    if not found or view.file.macros.of(name) or any(d in view.file.declared for d in found):
        return False
    if any(d.indirect or d.type_text != type_text for d in found):
        return False
    aliases = (n for n in walk(view.kernel.body) if n.type in {"pointer_expression", "reference_declarator"})
    return all(written_name(node) != name for node in aliases)


def explicit_edit(view: LoopView, factor: int) -> Edit:
    """One replacement of the whole loop; requires ``explicit_problem(view) is None``."""
    form, node, text = view.form, view.loop.node, view.file.text
    assert isinstance(form, Counted)
    end, indent = newline(text, node.start_byte), indentation(text, node.start_byte)
    inner = indent + b"    "
    body = text[view.loop.body.start_byte : view.loop.body.end_byte]
    step = _part(view, "update") + b";"
    copies = (end + inner + b"    " + step).join(
        [end + inner + b"    " + _braced(view.loop.body, body)] * factor
    )
    initializer = _part(view, "initializer").rstrip(b"; \t\r\n") + b";"
    condition, update = _part(view, "condition"), _part(view, "update")
    main = b"for (; " + _room_for(view, form, factor) + b"; " + update + b") {" + copies + end + inner + b"}"
    rest = b"for (; " + condition + b"; " + update + b") " + body
    lines = [b"{", inner + initializer, inner + main]
    if view.trips is None or view.trips.runs % factor:
        lines.append(inner + rest)
    return Edit(node.start_byte, node.end_byte, end.join([*lines, indent + b"}"]))


def _room_for(view: LoopView, form: Counted, factor: int) -> bytes:
    """The condition "at least ``factor`` iterations are left", without overflow.

    With a constant trip count the value at which the copies end is known. Otherwise the distance is
    taken in 64 unsigned bits, which is exact because counter and bound have one type.
    """
    variable = form.variable
    if view.trips is not None:
        assert form.step is not None
        last = view.trips.first + (view.trips.runs // factor * factor) * form.step
        return f"{variable} != {last}".encode()
    assert form.step is not None
    bound = text_of(form.bound)
    far, near = (bound, variable) if form.upwards else (variable, bound)
    distance = f"(unsigned long long){far} - (unsigned long long){near}"
    return f"{variable} {form.relation} {bound} && {distance} > {(factor - 1) * abs(form.step)}ull".encode()


def _braced(node: Node, body: bytes) -> bytes:
    return body if node.type == "compound_statement" else b"{ " + body + b" }"


def _part(view: LoopView, field: str) -> bytes:
    node = view.loop.node.child_by_field_name(field)
    assert node is not None
    return view.file.text[node.start_byte : node.end_byte]


def _head(view: LoopView) -> list[Node]:
    return [n for n in walk(view.loop.node) if n.start_byte < view.loop.body.start_byte]
