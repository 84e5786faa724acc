"""Whether a trace of a reader is sound: types, lengths, indices, registers, before anything relies on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.trace import Kernel, Trace
from rpl_core.model.value_checks import value_violation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.architecture import Architecture
    from rpl_core.model.recording import Recording


def require_sound(trace: object) -> None:
    """Raise ``TypeError`` or ``ValueError`` with the first problem; what ``Trace`` documents must hold."""
    if not isinstance(trace, Trace):
        raise TypeError(f"read gave {type(trace).__name__} where a Trace was expected")
    problem = value_violation(trace)
    if problem is not None:
        raise TypeError(f"Trace: {problem}")
    for problem in problems_of(trace):
        raise ValueError(f"Trace: {problem}")


def protect(trace: Trace) -> None:
    """Make the columns read-only, as everybody shares them."""
    for table in (getattr(trace, field.name) for field in attrs.fields(Trace)):
        if attrs.has(type(table)):
            for field in attrs.fields(type(table)):
                column = getattr(table, field.name)
                if isinstance(column, np.ndarray):
                    column.flags.writeable = False


def problems_of(trace: Trace) -> Iterator[str]:
    """Columns of different lengths and indices that point nowhere."""
    sizes = _sizes(trace)
    for name in ("dispatches", "copies", "api_calls", "device_events", "counters"):
        table = getattr(trace, name, None)
        if table is None:
            continue
        columns = {field.name: getattr(table, field.name) for field in attrs.fields(type(table))}
        if len({len(column) for column in columns.values()}) > 1:
            yield f"the columns of {name} have different lengths"
        for column, size in sizes.items():
            if column in columns and _outside(columns[column], size):
                yield f"{name}.{column} points outside of the {size} there are"


def _sizes(trace: Trace) -> Mapping[str, int]:
    """How many things an index column of this name may point to."""
    return {
        "process": len(trace.processes),
        "agent": len(trace.agents),
        "source_agent": len(trace.agents),
        "destination_agent": len(trace.agents),
        "kernel": len(trace.kernels),
        "stream": len(trace.streams),
        "queue": len(trace.queues),
        "source_queue": len(trace.queues),
        "shape": len(trace.shapes),
        "direction": len(trace.copy_directions),
        "function": len(trace.api_functions),
        "counter": len(trace.counter_names),
        "dispatch": len(trace.dispatches),
    }


def _outside(column: NDArray[Any], size: int) -> bool:
    """Whether an index is neither in ``range(size)`` nor -1."""
    return bool(column.size) and (int(np.min(column)) < -1 or int(np.max(column)) >= size)


def with_believable_registers(
    recording: Recording, architecture: Callable[[str], Architecture | None]
) -> Recording:
    """``recording`` without vector register counts in traces where some contradict the architecture.

    Some profiler releases record fewer vector registers than a GPU allocates (``RecordQuirks``). A count that
    is no allocation proves it, and then discredits all counts of its trace, whatever reader they came from.
    """
    traces = tuple(_checked(trace, architecture) for trace in recording.traces)
    same = all(old is new for old, new in zip(recording.traces, traces, strict=True))
    return recording if same else attrs.evolve(recording, traces=traces)


def _checked(trace: Trace, architecture: Callable[[str], Architecture | None]) -> Trace:
    names = {agent.architecture for agent in trace.agents if agent.kind == "GPU"}
    name = names.pop() if len(names) == 1 else None
    facts = architecture(name) if name is not None else None
    if facts is None or not facts.record_quirks.vgprs_may_be_halved:
        return trace
    granule = facts.record_quirks.vgpr_granule
    if granule is None or not any(_is_impossible(kernel, granule) for kernel in trace.kernels):
        return trace
    kernels = tuple(attrs.evolve(kernel, arch_vgpr=None, accum_vgpr=None) for kernel in trace.kernels)
    return attrs.evolve(trace, kernels=kernels, diagnostics=(_told(trace, facts), *trace.diagnostics))


def _is_impossible(kernel: Kernel, granule: int) -> bool:
    if kernel.arch_vgpr is None:
        return False
    return (kernel.arch_vgpr + (kernel.accum_vgpr or 0)) % granule != 0


def _told(trace: Trace, facts: Architecture) -> Diagnostic:
    count = len(trace.kernels)
    return Diagnostic(
        "kernel.impossible_registers",
        f"{count} kernels have VGPR counts of which some can't be allocated; all of them count as unknown",
        cause=f"the profiler release miscounts registers on {facts.name}",
        remedy="read the counts from the code objects, or record with a newer profiler",
        where=Path(trace.source.paths[-1]).name if trace.source.paths else None,
        count=count,
    )
