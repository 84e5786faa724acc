"""Instruction heat: the reader of its files, and its place in documents and reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from rpl_core.errors import BadDataError
from rpl_core.files import read_regular, refuse_countless
from rpl_core.interfaces.document import DocumentContext, DocumentSection
from rpl_core.interfaces.reader import InputSet, Reader
from rpl_core.interfaces.section import Block, Paragraph, ReportSection, SectionRequest, Table
from rpl_core.model.trace import Trace
from rpl_core.text import counted, shorten

if TYPE_CHECKING:
    from rpl_emu.heat_count import HeatLine, HeatPlace, InstructionHeat, KernelHeat

#: Of the files; they are claimed by name, before anything that reads them is imported.
SUFFIX = "_instruction_heat.json"
#: Key of the kernels in ``Trace.extras``.
EXTRA = "instruction_heat"
_LARGEST_BYTES = 64 << 20


class HeatReader(Reader):
    """One file per process; no times, no counters."""

    name = "instruction-heat"
    summary = f"counts per instruction of emulated kernels (*{SUFFIX})"
    priority = 60  # before readers of any JSON

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        return [
            InputSet(self.name, "instruction heat", (path,)) for path in files if path.name.endswith(SUFFIX)
        ]

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        from pydantic import ValidationError

        from rpl_emu.heat_count import HeatFile

        (path,) = inputs.paths
        read = read_regular(path, _LARGEST_BYTES)
        refuse_countless(read, path)
        try:
            content = HeatFile.model_validate_json(read)
        except ValidationError as error:
            place = ".".join(map(str, error.errors()[0]["loc"])) or "the whole"
            raise BadDataError(f"{path}, {place}: no instruction heat", next_step="profile again") from None
        return (_trace(inputs, content),)


def _trace(inputs: InputSet, content: object) -> Trace:
    import numpy as np

    from rpl_core.model.metric import Origin
    from rpl_core.model.trace import Dispatches, LaunchShapes, Trace, TraceRole, TraceSource

    index, number = np.zeros(0, np.int32), np.zeros(0, np.int64)
    axes = np.zeros((0, 3), np.int64)
    return Trace(
        source=TraceSource(inputs.reader, inputs.format, tuple(str(path) for path in inputs.paths)),
        role=TraceRole.THREAD_TRACE,
        origin=Origin.MODELLED,
        processes=(),
        agents=(),
        kernels=(),
        dispatches=Dispatches(index, index, index, index, index, index, number, number, number, number),
        shapes=LaunchShapes(axes, axes, number, number),
        extras={EXTRA: (content,)},
    )


# Instruction heat in ``profile.json`` and in all reports.

_FIELD = "instruction_heat"
_SHOWN_KERNELS, _SHOWN_LINES = 3, 5
_EXPLAINED = 20  # lines, and instructions, of one kernel that somebody asked for
_WAVE = 64
_NAME_WIDTH = 60
_COLUMNS = ("of all", "a wave", "lanes on", "source line")
_RIGHT = ("of all", "a wave", "lanes on")


class HeatInProfile(DocumentSection):
    name = "instruction-heat"
    summary = (
        "how often each instruction and source line of a kernel ran in the emulator, and with how many lanes"
    )
    document, field = "profile", _FIELD

    def model(self) -> type[InstructionHeat]:
        from rpl_emu.heat_count import InstructionHeat

        return InstructionHeat

    def draft(self, context: DocumentContext) -> InstructionHeat | None:
        """Of all processes; one that ran the same kernel has an entry of its own."""
        files = [file for trace in context.recording.traces for file in trace.extras.get(EXTRA, ())]
        kernels = [kernel for file in files for kernel in file.kernels]
        if not kernels:
            return None
        kernels.sort(key=lambda heat: (-heat.executed, heat.kernel))
        return self.model()(kernels=tuple(kernels))


class HeatSection(ReportSection):
    """Loops are lines that a wave runs often, divergence is a line with few lanes on."""

    name = "instruction-heat"
    summary = "where a kernel spends its instructions, and where lanes are off: emulated kernels"
    title = "Instruction heat"

    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        kernels = _kernels(request)
        drawn = [block for heat in kernels[:_SHOWN_KERNELS] for block in _kernel(heat, request, _SHOWN_LINES)]
        if len(kernels) > _SHOWN_KERNELS:
            drawn.append(Paragraph("The other kernels: rpl explain KERNEL."))
        return tuple(drawn)

    def explain(self, request: SectionRequest, kernel: str) -> tuple[Block, ...]:
        of_kernel = [heat for heat in _kernels(request) if heat.kernel == kernel]
        return tuple(block for heat in of_kernel for block in _explained(heat, request))


def _kernels(request: SectionRequest) -> tuple[KernelHeat, ...]:
    profile: Any = request.documents.get("profile")
    content = getattr(profile, "sections", {}).get(_FIELD)
    if not content:
        return ()
    from rpl_emu.heat_count import InstructionHeat

    return InstructionHeat.model_validate(content).kernels


def _kernel(heat: KernelHeat, request: SectionRequest, most: int) -> Iterator[Block]:
    name = request.short_names.get(heat.kernel) or shorten(heat.kernel, _NAME_WIDTH)
    launches = counted(heat.launches, "launch", "launches", shown=format(heat.launches, ","))
    yield Paragraph(
        f"{name}: {counted(heat.executed, 'instruction', shown=format(heat.executed, ','))} of "
        f"{counted(heat.waves, 'wave', shown=format(heat.waves, ','))} in {launches}, "
        f"{_lanes(heat.lanes, heat.vector)} of {_WAVE} lanes on (counted by the emulator)."
    )
    if heat.lines:
        yield Table(_COLUMNS, tuple(_line(line, heat) for line in heat.lines[:most]), right=_RIGHT)
    else:
        yield Paragraph(f"Source lines are unknown: {heat.lines_reason}.")
        rows = tuple(_instruction_row(place, heat) for place in heat.places[:most])
        yield Table(_place_columns(), rows, right=_RIGHT)


def _explained(heat: KernelHeat, request: SectionRequest) -> Iterator[Block]:
    yield from _kernel(heat, request, _EXPLAINED)
    if heat.lines:
        rows = tuple(_instruction_row(place, heat) for place in heat.places[:_EXPLAINED])
        yield Table(_place_columns(), rows, right=_RIGHT)


def _place_columns() -> tuple[str, ...]:
    return (*_COLUMNS[:3], "address", "instruction", "source line")


def _line(line: HeatLine, heat: KernelHeat) -> tuple[str, ...]:
    return *_counts(line.executed, line.lanes, line.vector, heat), _where(line.source, line.line)


def _instruction_row(place: HeatPlace, heat: KernelHeat) -> tuple[str, ...]:
    vector = 0 if place.lanes is None else place.executed
    counts = _counts(place.executed, place.lanes or 0, vector, heat)
    return *counts, f"0x{place.address:x}", place.opcode, _where(place.source, place.line)


def _counts(executed: int, lanes: int, vector: int, heat: KernelHeat) -> tuple[str, str, str]:
    share = f"{executed / heat.executed:.1%}" if heat.executed else "-"
    per_wave = f"{executed / heat.waves:,.1f}" if heat.waves else "-"
    return share, per_wave, _lanes(lanes, vector)


def _lanes(lanes: int, vector: int) -> str:
    """The mean over vector instructions."""
    return f"{lanes / vector:.1f}" if vector else "-"


def _where(source: str | None, line: int | None) -> str:
    return "-" if source is None else shorten(f"{PurePath(source).name}:{line}", _NAME_WIDTH)
