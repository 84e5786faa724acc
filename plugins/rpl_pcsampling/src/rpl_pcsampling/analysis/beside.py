"""What other plugins know of the kernels that were sampled.

Nothing of them is imported: the thread trace is a fact by its name, emulator counts are what their reader
left in the recording, and both are looked at as their documented JSON. Figures stand side by side and are
never mixed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rpl_core.contracts.common import MetricDoc
from rpl_pcsampling.analysis.counting import source_line
from rpl_pcsampling.contract import SampledKernel, SampledLine, SampledPlace, TracedInstruction

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rpl_analysis.counters.model import KernelQuantities
    from rpl_core.model.metric import Metric
    from rpl_core.model.recording import Recording

__all__ = ["Beside"]

_EMULATED = "instruction_heat"
#: Quantities that look at what samples look at: waits, lanes with work, busy pipes.
_QUANTITIES = (
    *("dependency_wait_fraction", "active_lane_fraction", "valu_utilization", "mfma_utilization"),
    "lds_bank_conflicts_per_access",
)
_ENCODING = re.compile(r"_(?:e32|e64|dpp|dpp8|sdwa|e64_dpp)$")


class Beside:
    """Looks a kernel's instructions up in the other sources."""

    def __init__(
        self,
        recording: Recording,
        traces: Mapping[str, Any] | None,
        quantities: Mapping[str, KernelQuantities] | None,
    ) -> None:
        self._traces = traces or {}
        self._quantities = quantities or {}
        files = (file for trace in recording.traces for file in trace.extras.get(_EMULATED, ()))
        self._emulated = {heat.kernel: heat for file in files for heat in file.kernels}

    def joined(self, kernel: SampledKernel) -> SampledKernel:
        """``kernel`` with what is known besides; itself without a name, by which everything is found."""
        if kernel.kernel is None:
            return kernel
        heat, trace = self._emulated.get(kernel.kernel), self._traces.get(kernel.kernel)
        changes: dict[str, Any] = {}
        if heat is not None or trace is not None:
            counted, traced = _by_address(heat), _traced(trace)
            changes["places"] = tuple(_place(place, counted, traced) for place in kernel.places)
            changes["lines"] = tuple(_lines(kernel.lines, heat))
        quantities = self._quantities.get(kernel.kernel)
        if quantities is not None:
            changes["counters"] = dict(_known(quantities))
        return kernel.model_copy(update=changes)


def _by_address(heat: Any) -> dict[tuple[int, str], Any]:
    return {} if heat is None else {(place.address, _mnemonic(place.opcode)): place for place in heat.places}


def _traced(trace: Any) -> dict[tuple[object, str], Any]:
    """Instructions by offset and text, and by source and text where that is one, for samples from CSV."""
    found: dict[tuple[object, str], Any] = {}
    repeated: set[tuple[object, str]] = set()
    for row in () if trace is None else trace.hot_instructions:
        text = _words(row.isa)
        found[row.vaddr, text] = row
        by_text = (row.source, text)
        if by_text in found:
            repeated.add(by_text)
        found[by_text] = row
    return {key: row for key, row in found.items() if key not in repeated}


def _place(
    place: SampledPlace, counted: Mapping[tuple[int, str], Any], traced: Mapping[tuple[object, str], Any]
) -> SampledPlace:
    """The text must agree, too: an address of another build is another instruction."""
    if place.instruction is None:
        return place
    changes: dict[str, Any] = {}
    text = _words(place.instruction)
    row = traced.get((place.source if place.offset is None else place.offset, text))
    if row is not None:
        changes["trace"] = TracedInstruction(
            share=row.share, hits=row.hits, latency=row.latency, stall=row.stall
        )
    if place.offset is not None and (heat := counted.get((place.offset, _mnemonic(text)))) is not None:
        changes |= {"executed": heat.executed, "executed_lanes": heat.lanes}
    return place.model_copy(update=changes)


def _lines(lines: Iterable[SampledLine], heat: Any) -> Iterable[SampledLine]:
    executed = {} if heat is None else {f"{line.source}:{line.line}": line.executed for line in heat.lines}
    for line in lines:
        count = executed.get(source_line(line.source) or "")
        yield line if count is None else line.model_copy(update={"executed": count})


def _known(quantities: KernelQuantities) -> Iterable[tuple[str, MetricDoc]]:
    for name in _QUANTITIES:
        metric = quantities.per_launch(name)
        if metric is not None and metric.value is not None:
            yield name, _doc(metric)


def _doc(metric: Metric) -> MetricDoc:
    return MetricDoc(
        value=metric.value,
        unit=metric.unit,
        exactness=metric.exactness.value if metric.exactness else None,
        origin=metric.origin.value if metric.origin else None,
        formula=metric.formula,
        counters=metric.counters,
        missing=metric.missing,
        upper=metric.upper,
        source=metric.source,
        reason=metric.reason,
        note=metric.note,
        partial=metric.partial,
    )


def _words(isa: str) -> str:
    return " ".join(isa.split())


def _mnemonic(isa: str) -> str:
    """Without the encoding, which one disassembler names and another one does not."""
    return _ENCODING.sub("", isa.split()[0]) if isa.split() else ""
