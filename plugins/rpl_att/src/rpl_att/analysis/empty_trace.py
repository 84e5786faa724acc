"""Why a trace holds no instruction, and what would hit next time (att.md, 3.2 and 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_att.analysis.occupancy import busiest_target

if TYPE_CHECKING:
    from rpl_att.model import ThreadTrace


_DECODE = ": there is no trace decoder on this machine; install it (`rpl doctor`)"
_ROCPROFV2 = ": of rocprofv2 rpl reads decoded folders only"


def why_empty(trace: ThreadTrace) -> str:
    """One line: the fact, then the cause as far as the files tell it, then the remedy."""
    if trace.pc_sampling_only:
        return "PC samples without a thread trace: they have no cycles; record with --att"
    if trace.code is None and trace.raw_files and trace.occupancy is None:
        why = _ROCPROFV2 if trace.dispatch_id is None else _DECODE
        return f"{trace.raw_files} raw .att files were not decoded{why}"
    fact = "no instruction was traced"
    target = busiest_target(trace.occupancy) if trace.occupancy else None
    if target is not None:
        engine, cu = target
        options = f"--att-target-cu {cu} --att-shader-engine-mask {1 << engine:#x}"
        return (
            f"{fact}: no wave ran on the target CU of the traced shader engines; "
            f"most waves ran on CU {cu} of SE {engine}: record again with {options}"
        )
    if trace.occupancy is not None:
        return (
            f"{fact}, and no wave either: the dispatch was not traced (kernel filter, iteration, GPU index)"
        )
    return f"{fact}, and the trace does not say where waves ran"
