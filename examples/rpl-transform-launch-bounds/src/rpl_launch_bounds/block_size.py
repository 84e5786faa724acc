"""The number of threads that a block-size expression stands for, when the file settles it."""

from __future__ import annotations

import re

from rpl_launch_bounds.brackets import split_arguments

_INTEGER = re.compile(rb"(0[xX][0-9a-fA-F']+|[1-9][0-9']*)[uUlL]{0,3}")
_NAME = re.compile(rb"[A-Za-z_]\w*")
_DIM3 = re.compile(rb"dim3\s*[({](.*)[)}]", re.DOTALL)


def threads_per_block(expression: bytes, code: bytes, with_directives: bytes) -> int | None:
    """The product over the dimensions, or ``None`` when the file does not settle it.

    ``code`` is the file without comments, ``with_directives`` the same with preprocessor lines.
    """
    dimensions = _DIM3.fullmatch(expression)
    if dimensions is not None:
        return _product(dimensions[1], code, with_directives)
    if _NAME.fullmatch(expression):
        declared = _declared_dim3(expression, code)
        if declared is not None:
            return _product(declared, code, with_directives)
    return _integer(expression, code, with_directives)


def _product(arguments: bytes, code: bytes, with_directives: bytes) -> int | None:
    total = 1
    for argument in split_arguments(arguments):
        size = _integer(argument, code, with_directives)
        if size is None:
            return None
        total *= size
    return total


def _integer(expression: bytes, code: bytes, with_directives: bytes) -> int | None:
    literal = _INTEGER.fullmatch(expression)
    if literal is not None:
        return int(literal[1].replace(b"'", b""), 0)
    if _NAME.fullmatch(expression) is None:
        return None
    name = re.escape(expression)
    constants = re.findall(
        rb"\b(?:constexpr|const)\b[^;={}()]*\b" + name + rb"\s*[={]\s*([^;}]*?)\s*[;}]", code
    )
    macros = re.findall(
        rb"^[ \t]*#[ \t]*define[ \t]+" + name + rb"[ \t]+([^\n]*?)[ \t]*$", with_directives, re.M
    )
    values = [*constants, *macros]
    # Two definitions of one name are two scopes or two build variants: not settled.
    settled = len(values) == 1 and _declarations(expression, code) == len(constants)
    value = _INTEGER.fullmatch(values[0]) if settled else None
    return None if value is None else int(value[1].replace(b"'", b""), 0)


def _declared_dim3(name: bytes, code: bytes) -> bytes | None:
    """The arguments of ``dim3 NAME(...)`` if it is declared once and only used as a launch argument."""
    declarations = re.findall(
        rb"\bdim3\s+" + re.escape(name) + rb"\s*(?:=\s*dim3\s*)?[({]([^;]*)[)}]\s*;", code
    )
    if len(declarations) != 1 or _declarations(name, code) != 1:
        return None
    uses = re.findall(rb"\b" + re.escape(name) + rb"\b\s*(.)", code, re.DOTALL)
    changed = re.search(rb"&\s*" + re.escape(name) + rb"\b", code)
    passed_on = [use for use in uses if use in b",>)"]
    return declarations[0] if len(passed_on) == len(uses) - 1 and changed is None else None


def _declarations(name: bytes, code: bytes) -> int:
    """How often ``name`` follows a type: parameters and inner scopes may hide the one we found."""
    words = re.findall(rb"\b([A-Za-z_]\w*)(?:\s+|\s*&\s*)" + re.escape(name) + rb"\b", code)
    return sum(word not in {b"return", b"case", b"else"} for word in words)
