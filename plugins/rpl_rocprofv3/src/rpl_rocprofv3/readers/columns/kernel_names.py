"""Kernel names as people and other passes write them: without the suffixes of loaders and profilers."""

from __future__ import annotations

__all__ = ["display_name", "plain_symbol"]

# rocprofv2 appends " (.kd)", demanglers " [clone .kd]", the loader ".kd" (docs/reference/formats.md, 2.2; the
# workload folders of MI300 and MI200).
_SUFFIXES = (" (.kd)", " [clone .kd]", ".kd")


def display_name(name: str) -> str:
    """``name`` without a kernel-descriptor suffix, so that passes and formats agree."""
    name = name.strip()
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return name


def plain_symbol(name: str | None) -> str | None:
    """The linker symbol of a mangled or unmangled name, None when there is none."""
    return display_name(name) if name else None
