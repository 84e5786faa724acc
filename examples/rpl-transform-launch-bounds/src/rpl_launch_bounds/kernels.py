"""Find kernel definitions: ``__global__``, attributes, return type, name, parameters, body."""

from __future__ import annotations

import re

import attrs

from rpl_launch_bounds.brackets import matching_end

_GLOBAL = re.compile(rb"\b__global__\b")
_TOKEN = re.compile(rb"\s*(?:([A-Za-z_]\w*)|(\()|(\S))")
_BOUNDS = {b"__launch_bounds__", b"launch_bounds", b"amdgpu_flat_work_group_size"}
_WITH_ARGUMENTS = {b"__launch_bounds__", b"__attribute__", b"alignas"}


@attrs.frozen
class Kernel:
    """A kernel definition; ``name_offset`` is where its name begins."""

    name: str
    name_offset: int
    line: int
    bounded: bool
    internal: bool  # static, so that no other file can launch it


def find_kernels(code: bytes) -> tuple[Kernel, ...]:
    """All definitions in ``code`` (declarations have nothing to attach bounds to), in order."""
    found = [_kernel_at(code, match.start(), match.end()) for match in _GLOBAL.finditer(code)]
    return tuple(kernel for kernel in found if kernel is not None)


def _kernel_at(code: bytes, begin: int, offset: int) -> Kernel | None:
    name: tuple[str, int] | None = None
    bounded = False
    while (match := _TOKEN.match(code, offset)) is not None and match[3] is None:
        offset = match.end()
        if match[1] is not None:
            bounded |= match[1] in _BOUNDS
            if match[1] in _WITH_ARGUMENTS:
                arguments = code[offset : (end := _skip_arguments(code, offset))]
                bounded |= any(word in arguments for word in _BOUNDS)
                offset = end
            else:
                name = (match[1].decode(), match.start(1))
            continue
        return _finish(code, begin, offset - 1, name, bounded)
    return None


def _skip_arguments(code: bytes, offset: int) -> int:
    match = _TOKEN.match(code, offset)
    if match is None or match[2] is None:
        return offset
    return matching_end(code, match.start(2)) or offset


def _finish(
    code: bytes, begin: int, parameters: int, name: tuple[str, int] | None, bounded: bool
) -> Kernel | None:
    end = matching_end(code, parameters)
    if name is None or end is None or not code[end:].lstrip().startswith(b"{"):
        return None
    statement = max(code.rfind(mark, 0, begin) for mark in (b";", b"}", b"{")) + 1
    specifiers = code[statement : name[1]]
    bounded |= any(word in specifiers for word in _BOUNDS)
    internal = re.search(rb"\bstatic\b", specifiers) is not None
    return Kernel(name[0], name[1], code.count(b"\n", 0, name[1]) + 1, bounded, internal)
