"""The heat of each kernel, from what the software KFD wrote down, and the contract of its file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import FailFast, Field

from rpl_core.contracts.common import Part
from rpl_core.errors import RplError
from rpl_core.files import write_atomic

if TYPE_CHECKING:
    from rpl_codeobject.kernel_code import CodeObject
    from rpl_codeobject.reading.debug_info import SourcePlace
    from rpl_emu.rocpd_file import EmulatedLaunch

Count = Annotated[int, Field(ge=0)]


class HeatPlace(Part):
    """One instruction; ``address`` is that in the code object, source and line those of the compiler."""

    address: Count
    opcode: str
    executed: Count
    lanes: Count | None  # null: it acts for the whole wave
    source: str | None = None
    line: int | None = None


class HeatLine(Part):
    """All instructions of one source line; inlined code counts where it was written."""

    source: str
    line: int
    executed: Count
    vector: Count
    lanes: Count


class KernelHeat(Part):
    """One kernel: lines and instructions by how often they ran, the most frequent first."""

    kernel: str
    symbol: str
    launches: Count
    waves: Count
    executed: Count
    vector: Count
    lanes: Count
    lines: Annotated[tuple[HeatLine, ...], FailFast()]
    lines_reason: str | None  # why there are no lines
    places: Annotated[tuple[HeatPlace, ...], FailFast()]
    places_left_out: Count


class InstructionHeat(Part):
    """Kernels by instructions that ran, the most first."""

    kernels: Annotated[tuple[KernelHeat, ...], FailFast()]


class HeatFile(Part):
    """``<pid>_instruction_heat.json`` of a pass."""

    format: Literal["rpl instruction heat 1"]
    kernels: Annotated[tuple[KernelHeat, ...], FailFast()]


# The heat of each kernel from what the software KFD wrote down, with lines by debug information.

_ISA = "gfx942"
#: Chosen: enough for a hand-written kernel whole; unrolled ones are cut to what matters.
_MOST_PLACES = 1000
_VECTOR = ("v_", "ds_", "global_", "flat_", "buffer_", "scratch_")
_NO_CODE = "no file of the command holds this kernel's code object"
_NO_LINES = "the code object has no line tables (compile with -g)"


def write_heat(path: Path, launches: Iterable[EmulatedLaunch], command: Sequence[str]) -> None:
    """What ran, summed over launches of a kernel. Raises ``OSError``."""
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for launch in launches:
        grouped.setdefault(launch.facts["symbol"], []).append(launch.facts)
    lines = _Lines(command)
    kernels = [_kernel_heat(facts, lines) for facts in grouped.values()]
    kernels.sort(key=lambda heat: (-heat.executed, heat.kernel))
    content = HeatFile(format="rpl instruction heat 1", kernels=tuple(kernels))
    write_atomic(path, content.model_dump_json())


class _Lines:
    """Source places by address, for the kernels of code objects in the files that a command names."""

    def __init__(self, command: Sequence[str]) -> None:
        from rpl_codeobject.reading import read_code_objects

        self._codes: list[CodeObject] = []
        for word in command:
            try:
                codes = read_code_objects(Path(word)) if Path(word).is_file() else ()
            except (RplError, OSError, ValueError):  # options, data, scripts
                continue
            self._codes += [code for code in codes if code.architecture == _ISA]

    def of(self, symbol: str, addresses: Sequence[int]) -> tuple[Mapping[int, SourcePlace], str | None]:
        from rpl_codeobject.reading.debug_info import source_lines

        for code in self._codes:
            if code.kernel(f"{symbol}.kd") is not None:
                lines = source_lines(code, addresses)
                return lines, None if lines else _NO_LINES
        return {}, _NO_CODE


def _kernel_heat(launches: Sequence[Mapping[str, Any]], lines: _Lines) -> KernelHeat:
    counts: dict[int, tuple[str, int, int]] = {}
    for facts in launches:
        for place in facts["places"]:
            at = int(place["at"], 16)
            _, executed, lanes = counts.get(at, ("", 0, 0))
            counts[at] = place["opcode"], executed + place["executed"], lanes + place["lanes"]
    first = launches[0]
    where, reason = lines.of(first["symbol"], sorted(counts))
    places = sorted((_heat_place(at, count, where.get(at)) for at, count in counts.items()), key=_hottest)
    vector = [place for place in places if place.lanes is not None]
    return KernelHeat(
        kernel=first["kernel"],
        symbol=first["symbol"],
        launches=len(launches),
        waves=sum(facts["waves"] for facts in launches),
        executed=sum(place.executed for place in places),
        vector=sum(place.executed for place in vector),
        lanes=sum(place.lanes or 0 for place in vector),
        lines=tuple(_lines_of(places)),
        lines_reason=reason,
        places=tuple(places[:_MOST_PLACES]),
        places_left_out=max(0, len(places) - _MOST_PLACES),
    )


def _hottest(place: HeatPlace) -> tuple[int, int]:
    return -place.executed, place.address


def _heat_place(address: int, count: tuple[str, int, int], where: SourcePlace | None) -> HeatPlace:
    opcode, executed, lanes = count
    return HeatPlace(
        address=address,
        opcode=opcode,
        executed=executed,
        lanes=lanes if opcode.startswith(_VECTOR) else None,
        source=None if where is None else str(where.path),
        line=None if where is None else where.line,
    )


def _lines_of(places: Iterable[HeatPlace]) -> list[HeatLine]:
    sums: dict[tuple[str, int], list[int]] = {}
    for place in places:
        if place.source is not None and place.line is not None:
            total = sums.setdefault((place.source, place.line), [0, 0, 0])
            total[0] += place.executed
            total[1] += place.executed if place.lanes is not None else 0
            total[2] += place.lanes or 0
    lines = [
        HeatLine(source=source, line=line, executed=executed, vector=vector, lanes=lanes)
        for (source, line), (executed, vector, lanes) in sums.items()
    ]
    return sorted(lines, key=lambda line: (-line.executed, line.source, line.line))
