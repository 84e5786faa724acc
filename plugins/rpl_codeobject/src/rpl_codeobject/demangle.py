"""Demangled names by LLVM's own demangler, which also makes the names in recordings."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["demangled"]

_TIME_LIMIT_S = 30.0


def demangled(names: Sequence[str], disassembler: Path) -> Mapping[str, str]:
    """Name -> demangled name by the ``llvm-cxxfilt`` beside ``disassembler``; nothing where that fails."""
    plain = [name for name in names if name.isprintable() and name.strip() == name and name]
    tool = disassembler.with_name(disassembler.name.replace("objdump", "cxxfilt"))
    if not plain or tool == disassembler or not tool.is_file():
        return {}
    try:
        done = subprocess.run(
            [str(tool)],
            input="\n".join(plain).encode(),
            capture_output=True,
            timeout=_TIME_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return dict(zip(plain, lines, strict=True)) if len(lines) == len(plain) else {}
