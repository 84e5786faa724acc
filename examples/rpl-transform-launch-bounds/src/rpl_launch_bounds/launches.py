"""Find every place where a kernel's name is used: launches with their block size, and anything else."""

from __future__ import annotations

import re

import attrs

from rpl_launch_bounds.brackets import matching_end, split_arguments

_TRIPLE = re.compile(rb"\s*(?:<[^<>;{}]*>)?\s*<<<")
_LAUNCH_MACRO = re.compile(rb"\bhipLaunchKernelGGL\s*(?=\()")


@attrs.frozen
class Use:
    """One use of the name. ``block`` is the expression of the block size, ``None`` when it is no launch."""

    line: int
    block: bytes | None


def find_uses(code: bytes, with_directives: bytes, name: str, definition_offset: int) -> tuple[Use, ...]:
    """All uses of kernel ``name`` other than its definition, in order.

    A name inside a preprocessor directive is a use of unknown kind: a macro may launch the kernel.
    """
    uses = []
    for match in re.finditer(rb"\b" + re.escape(name.encode()) + rb"\b", with_directives):
        if match.start() != definition_offset:
            line = code.count(b"\n", 0, match.start()) + 1
            in_code = code[match.start() : match.end()] == match[0]
            uses.append(Use(line, _block(code, match.start(), match.end()) if in_code else None))
    return tuple(uses)


def _block(code: bytes, begin: int, end: int) -> bytes | None:
    return _block_of_triple(code, end) or _block_of_macro(code, begin)


def _block_of_triple(code: bytes, offset: int) -> bytes | None:
    opening = _TRIPLE.match(code, offset)
    if opening is None:
        return None
    closing = code.find(b">>>", opening.end())
    if closing < 0:
        return None
    arguments = split_arguments(code[opening.end() : closing])
    return arguments[1] if len(arguments) >= 2 else None


def _block_of_macro(code: bytes, offset: int) -> bytes | None:
    """The third argument of a ``hipLaunchKernelGGL`` whose first argument holds ``offset``."""
    for macro in _LAUNCH_MACRO.finditer(code, 0, offset):
        end = matching_end(code, macro.end())
        if end is not None and offset < end:
            arguments = split_arguments(code[macro.end() + 1 : end - 1])
            first_end = macro.end() + 1 + len(code[macro.end() + 1 : end - 1].split(b",", 1)[0])
            return arguments[2] if len(arguments) >= 3 and offset < first_end else None
    return None
