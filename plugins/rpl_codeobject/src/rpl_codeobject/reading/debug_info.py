"""Where kernels were written, by the debug information of their code objects (DWARF).

The reading itself happens in ``debug_reader``, in a process of its own with limits. Paths come from the file:
they are names, to be used only where they lead to a file that is what one expects.
"""

from __future__ import annotations

import json
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_codeobject.reading import debug_reader
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_codeobject.kernel_code import CodeObject

_SECTION = b".debug_line"
_TIME_LIMIT_S = 2.0 * debug_reader.CPU_LIMIT_S


@frozen
class SourcePlace:
    """A line of a file; the path is what the compiler wrote down and need not exist."""

    path: Path
    line: int


def kernel_sources(code_objects: Iterable[CodeObject]) -> Mapping[str, SourcePlace]:
    """Kernel symbol (with ``.kd``) -> where it is declared.

    Kernels without debug information, and code objects whose debug information can't be read, are left out.
    """
    places: dict[str, SourcePlace] = {}
    for code in code_objects:
        for symbol, place in _read("-", code.elf).get("kernels", {}).items():
            places.setdefault(symbol, SourcePlace(Path(place[0]), int(place[1])))
    return places


def source_lines(code: CodeObject, addresses: Sequence[int]) -> Mapping[int, SourcePlace]:
    """Address of an instruction -> where it was written, inlined code where that stands.

    Addresses that no line table covers are left out.
    """
    rows = sorted(_read("-", code.elf, "lines").get("lines", ()))
    begins = [row[0] for row in rows]
    places = {}
    for address in addresses:
        begin, end, path, line = rows[bisect_right(begins, address) - 1] if rows else (0, 0, "", 0)
        if begin <= address < end:
            places[address] = SourcePlace(Path(path), line)
    return places


def unit_sources(program: Path) -> tuple[Path, ...]:
    """The main source files of a host program's compile units, sorted; none without debug information."""
    return tuple(Path(path) for path in _read(str(program.absolute()), b"").get("units", ()))


def _read(place: str, data: bytes, what: str = "tables") -> dict[str, Any]:
    if data and _SECTION not in data:
        return {}
    reader = str(Path(debug_reader.__file__))
    command = (sys.executable, "-I", reader, json.dumps(sys.path), place, what)
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=_TIME_LIMIT_S, check=True)
        answer = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):  # no DWARF that could be read within the limits
        return {}
    return answer if isinstance(answer, dict) else {}
