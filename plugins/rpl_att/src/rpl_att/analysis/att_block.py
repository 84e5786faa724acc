"""The ``att`` block of one traced dispatch, put together from the single analyses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rpl_att.analysis import (
    Totals,
    checks,
    instruction_mix,
    memory_latencies,
    memory_wait_cycles,
    stall_split,
    totals_of,
    vector_memory_latency,
    waits,
)
from rpl_att.analysis.utilisation import (
    busiest_target,
    ipc,
    issue_utilization,
    mfma_utilisation,
    occupancy,
    occupancy_timeline,
    state_timelines,
    valu_utilisation,
    waves_per_simd,
)
from rpl_att.contract import (
    AttBranch,
    AttCycles,
    AttInstruction,
    AttLoop,
    AttPart,
    AttSourceLine,
    AttWaveStates,
)
from rpl_att.decoded_trace import Level, ThreadTrace
from rpl_att.instruction_class import InstructionClass
from rpl_att.reading import INLINE, CodeTable
from rpl_att.reduction import FlowTotals, ReducedWaves
from rpl_core.text import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.model.device import Architecture

_NO_WAVES = "no wave file could be read"
_WAVE_FIELDS = ("wave_states", "ipc", "waves_per_simd", "issue_utilization", "memory_latency", "waits")
_SHOWN_WAITS = 40
#: With more of the instructions unresolved the figures would be those of a part (chosen).
_MOST_UNRESOLVED = 0.5
_HEADROOM_SOURCE = "thread trace: (memory wait + idle) / (latency + idle) of the traced waves"
_UNDECODED = ": there is no trace decoder on this machine; install it (`rpl doctor`)"
_UNDECODED_ROCPROFV2 = ": of rocprofv2 rpl reads decoded folders only"


def att_block(trace: ThreadTrace, architecture: Architecture | None) -> AttPart:
    """Everything that ``trace`` tells; an empty trace has a reason and no figures."""
    totals = totals_of(trace)
    if totals is None or _mostly_unresolved(trace, totals):
        # An empty trace must never look like one without stall.
        unreadable = trace.problems[0] if trace.code is None and trace.problems else _why_unresolved(trace)
        return AttPart(
            **_identity(trace),
            **_occupancy(trace),
            status="unreadable" if unreadable else "empty",
            reason=unreadable or _why_empty(trace),
        )
    unavailable = dict(totals.reasons)
    fields = {
        **_identity(trace),
        **_cycles(trace, totals, unavailable),
        **_from_code(trace, totals, unavailable),
        **_from_waves(trace, totals, unavailable),
        **_from_samples(trace, totals, architecture, unavailable),
        **_by_kind(trace, totals, unavailable),
        "checks": checks(trace, totals),
    }
    reason = _why_partial(trace)
    return AttPart(
        **fields, status="partial" if reason else "available", reason=reason, unavailable=unavailable
    )


def _by_kind(trace: ThreadTrace, totals: Totals, unavailable: dict[str, str]) -> dict[str, Any]:
    """What needs the kind of each instruction: without code no wait is known, which is not 0 % of waits."""
    if trace.code is None:
        unavailable["stall_split"] = "no table of instructions could be read"
        return {}
    return {
        "stall_split": stall_split(totals, trace.code.isa, _startup(trace.waves)),
        "instruction_mix": instruction_mix(totals),
    }


def _mostly_unresolved(trace: ThreadTrace, totals: Totals) -> bool:
    """Whether most traced instructions match no row of the code: then every share would be of the rest."""
    return trace.code is not None and totals.extra_hit > _MOST_UNRESOLVED * totals.hits


def _why_unresolved(trace: ThreadTrace) -> str | None:
    totals = totals_of(trace)
    if totals is None or not _mostly_unresolved(trace, totals):
        return None
    return (
        f"{totals.extra_hit:,} of {totals.hits:,} traced instructions match no row of the code table: "
        "its layout is unknown, or it is of another program; decode the trace again"
    )


def _why_empty(trace: ThreadTrace) -> str:
    """One line: the fact, the cause as far as the files tell it, the remedy.

    See docs/reference/thread-trace.md, 4.2 and 4.3.
    """
    if trace.pc_sampling_only:
        return "PC samples without a thread trace: they have no cycles; record with --att"
    if trace.code is None and trace.raw_files and trace.occupancy is None:
        why = _UNDECODED_ROCPROFV2 if trace.dispatch_id is None else _UNDECODED
        return f"{counted(trace.raw_files, 'raw .att file was', 'raw .att files were')} not decoded{why}"
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


def _identity(trace: ThreadTrace) -> dict[str, Any]:
    read = trace.waves.waves if trace.waves else ()
    engines = {wave.file.shader_engine for wave in read}
    units = sorted({(wave.file.shader_engine, wave.cu) for wave in read if wave.cu is not None})
    warnings = (*trace.problems, *((trace.kernel.problem,) if trace.kernel.problem else ()))
    return {
        "origin": trace.origin.value,
        "level": trace.level.value,
        "layout": trace.code.layout if trace.code else None,
        "folder": trace.folder,
        "kernel": trace.kernel.name,
        "symbol": trace.kernel.symbol,
        "agent_handle": trace.agent_handle,
        "dispatch_id": trace.dispatch_id,
        "joined_by": trace.kernel.witness,
        "architecture": trace.architecture,
        "shader_engines": tuple(sorted(engines)),
        "compute_units": tuple(f"SE{engine} CU{cu}" for engine, cu in units),
        "waves": len(read),
        "waves_missing": trace.waves.missing_files + len(trace.waves.damaged) if trace.waves else 0,
        "shader_clock_mhz": trace.shader_clock_mhz,
        "counters": trace.counters,
        "warnings": warnings,
    }


def _cycles(trace: ThreadTrace, totals: Totals, unavailable: dict[str, str]) -> dict[str, Any]:
    stall, idle = totals.stall_sum, totals.idle_sum
    lives = sum(wave.lifetime for wave in trace.waves.waves) if trace.waves else None
    latency = totals.latency_sum
    if idle is None:
        lost = unavailable["idle"]
        unavailable.update(dict.fromkeys(("idle_fraction", "stall_split", "headroom_fraction"), lost))
    if stall is None or idle is None:
        why = unavailable.get("stall") or unavailable["idle"]
        unavailable.update(dict.fromkeys(("stall_fraction", "issue_fraction"), why))
    memory = memory_wait_cycles(totals, trace.code.isa) if trace.code else None
    headroom = None if memory is None or idle is None else totals.fraction(memory + idle)
    return {
        "instructions": totals.hits,
        "unresolved_instructions": totals.extra_hit if trace.waves else None,
        "cycles": AttCycles(latency=latency, stall=stall, idle=idle, total=totals.total, lifetime=lives),
        "issue_fraction": totals.fraction(None if stall is None else latency - stall),
        "stall_fraction": totals.fraction(stall),
        "idle_fraction": totals.fraction(idle),
        "headroom_fraction": None if headroom is None else min(1.0, headroom),
        "headroom_source": None if headroom is None else _HEADROOM_SOURCE,
    }


def _from_code(trace: ThreadTrace, totals: Totals, unavailable: dict[str, str]) -> dict[str, Any]:
    if trace.code is None:
        return {}
    edges = trace.waves.flow.edges if trace.waves else None
    fields = {
        "hot_instructions": hot_instructions(trace.code, totals),
        "hot_lines": tuple(
            line.model_copy(update={"text": trace.source_texts.get(line.source)})
            for line in hot_lines(trace.code, totals)
        ),
    }
    if trace.level is Level.STATS:
        unavailable["loops"] = "loops are looked for in code tables and wave files only"
    else:
        fields["loops"] = loops(trace.code, totals, edges)
    return fields


def _from_waves(trace: ThreadTrace, totals: Totals, unavailable: dict[str, str]) -> dict[str, Any]:
    waves = trace.waves
    if waves is None:
        unavailable.update(dict.fromkeys(_WAVE_FIELDS, _NO_WAVES))
        return {}
    latencies = memory_latencies(waves.latencies)
    utilisation = issue_utilization(waves)
    if utilisation is None:
        unavailable["issue_utilization"] = "one SIMD has more issue intervals than are held in memory"
    average = vector_memory_latency(latencies)
    if average is None:
        unavailable["avg_memory_latency"] = "no wait waited for a load of vector memory"
    code = trace.code
    return {
        "wave_states": AttWaveStates(
            idle=waves.states[1], exec=waves.states[2], wait=waves.states[3], stall=waves.states[4]
        ),
        "ipc": ipc(waves, totals.total or 0),
        "waves_per_simd": waves_per_simd(waves),
        "issue_utilization": utilisation or {},
        "memory_latency": latencies,
        "avg_memory_latency": average,
        "waits": waits(code, totals, waves.waits, _SHOWN_WAITS) if code else (),
        "branch_hints": branch_hints(code, totals, waves.flow) if code else (),
    }


def _from_samples(
    trace: ThreadTrace, totals: Totals, architecture: Architecture | None, unavailable: dict[str, str]
) -> dict[str, Any]:
    if trace.level is Level.RAW:
        unavailable["counters"] = "a raw trace does not name its performance counters"
    windows = sum(simd.window for simd in trace.waves.simds) if trace.waves else None
    return {
        **_occupancy(trace, unavailable),
        "valu_utilization": valu_utilisation(trace.counters),
        "mfma_utilization": mfma_utilisation(trace.counters, trace.code, totals, windows, architecture),
    }


def _occupancy(trace: ThreadTrace, unavailable: dict[str, str] | None = None) -> dict[str, Any]:
    states = state_timelines(trace.states)
    if trace.occupancy is None:
        if unavailable is not None:
            unavailable["occupancy"] = "the trace holds no occupancy events"
        return {"timelines": states}
    engines = [engine for engine in trace.occupancy.engines if len(engine)]
    curves = tuple(occupancy_timeline(engine) for engine in engines)
    return {"occupancy": occupancy(trace.occupancy), "timelines": (*states, *curves)}


def _startup(waves: ReducedWaves | None) -> int | None:
    return None if waves is None else sum(wave.startup for wave in waves.waves)


def _why_partial(trace: ThreadTrace) -> str | None:
    """What is missing of the trace, in one line."""
    parts = []
    if trace.waves is not None:
        if trace.waves.missing_files:
            parts.append(f"{counted(trace.waves.missing_files, 'wave file is', 'wave files are')} not there")
        if trace.waves.damaged:
            parts.append(f"{counted(len(trace.waves.damaged), 'wave file is', 'wave files are')} damaged")
        if trace.waves.lines.unresolved:
            unresolved = counted(trace.waves.lines.unresolved, "instruction matches", "instructions match")
            parts.append(f"{unresolved} no row of the code")
        lost = sum(wave.not_stitched for wave in trace.waves.waves)
        if lost:
            parts.append(f"the decoder matched {counted(lost, 'token')} to no instruction")
    if trace.level is Level.RAW and trace.problems:
        parts.append(f"decoding left {counted(len(trace.problems), 'doubt')}, see the warnings")
    if trace.waves is None:
        parts.append(f"{_NO_WAVES}: figures are those of the {trace.level.value} table")
    return "; ".join(parts) or None


# Where the cycles are: instructions, lines of source through inlined calls, loops, branches.

#: Entries in the documents; `rpl att show` has all of them (chosen).
SHOWN = 40

Counts = NDArray[np.int64]


def cost(totals: Totals) -> Counts:
    """Cycles by row: latency + idle, or latency alone where idle is unknown."""
    return totals.latency if totals.idle is None else totals.latency + totals.idle


def own_cost(totals: Totals) -> Counts:
    """Cycles by row without those in which waves started up."""
    return cost(totals) if totals.idle is None else cost(totals) - totals.startup


def frames(source: str) -> tuple[str, ...]:
    """The frames of a source entry, innermost first; empty without debug information."""
    return tuple(part.strip() for part in source.split(INLINE) if part.strip())


def instruction(code: CodeTable, totals: Totals, row: int) -> AttInstruction:
    idle = None if totals.idle is None else int(totals.idle[row])
    latency = int(totals.latency[row])
    return AttInstruction(
        line=int(code.line[row]),
        code_object=int(code.code_object[row]),
        vaddr=int(code.vaddr[row]),
        isa=code.isa[row],
        source=code.source[row] or None,
        kind=totals.kinds[row].value,
        hits=int(totals.hit[row]),
        latency=latency,
        stall=None if totals.stall is None else int(totals.stall[row]),
        idle=idle,
        share=totals.fraction(None if idle is None else latency + idle),
    )


def hot_instructions(code: CodeTable, totals: Totals, limit: int = SHOWN) -> tuple[AttInstruction, ...]:
    """Executed rows by descending cycles, then by line; the start-up of waves is no instruction's cost."""
    cycles = own_cost(totals)
    order = np.lexsort((code.line, -cycles))
    rows = [int(row) for row in order if totals.hit[row] > 0]
    return tuple(instruction(code, totals, row) for row in rows[:limit])


def hot_lines(code: CodeTable, totals: Totals, limit: int | None = SHOWN) -> tuple[AttSourceLine, ...]:
    """Source lines by descending cycles; a row counts for its innermost frame only, so nothing doubles.

    The start-up of waves is no line's cost, as in ``hot_instructions``.
    """
    cycles = own_cost(totals)
    by_line: dict[str, list[int]] = {}
    for row in np.flatnonzero(totals.hit).tolist():
        chain = frames(code.source[row])
        if chain:
            by_line.setdefault(chain[0], []).append(row)
    order = sorted(by_line, key=lambda name: (-int(cycles[by_line[name]].sum()), name))
    return tuple(_source_line(name, by_line[name], code, totals) for name in order[:limit])


def _source_line(name: str, rows: list[int], code: CodeTable, totals: Totals) -> AttSourceLine:
    latency = int(totals.latency[rows].sum())
    idle = None if totals.idle is None else int(totals.idle[rows].sum())
    callers = {INLINE.join(frames(code.source[row])[1:]) for row in rows}
    return AttSourceLine(
        source=name,
        instructions=len(rows),
        hits=int(totals.hit[rows].sum()),
        latency=latency,
        stall=None if totals.stall is None else int(totals.stall[rows].sum()),
        idle=idle,
        share=totals.fraction(None if idle is None else latency + idle),
        callers=tuple(sorted(caller for caller in callers if caller)),
    )


# Control flow of a kernel: loops with iterations and cycles, and hints at divergence.
#
# Loops come from backward branches. With wave files the targets are those that waves really jumped to. With
# the code table alone they are computed from the branch's operand (target = address + 4 + 4 * simm16, gfx9
# to gfx12 ISA manuals: SOPP).

_OPERAND = re.compile(r"s_c?branch\S*\s+(-?\d+)\s*\Z")
_BRANCH_BYTES = 4
_SHOWN_HINTS = 20


@frozen
class _Range:
    """Rows [first, last] of one loop; ``iterations`` is ``None`` where only the code is known."""

    first: int
    last: int
    iterations: int | None


def loops(
    code: CodeTable, totals: Totals, edges: Mapping[tuple[int, int], int] | None
) -> tuple[AttLoop, ...]:
    """Loops in order of their first row, outer before inner. ``edges``: taken branches, by row."""
    back = _jumped(edges, code) if edges is not None else _static(code, totals)
    ranges = sorted(_by_header(back), key=lambda r: (r.first, -r.last))
    return tuple(_loop(loop_range, ranges, code, totals) for loop_range in ranges)


def _jumped(edges: Mapping[tuple[int, int], int], code: CodeTable) -> dict[tuple[int, int], int | None]:
    size = len(code)
    return {
        (source, target): count
        for (source, target), count in edges.items()
        if source < size and target <= source and code.code_object[source] == code.code_object[target]
    }


def _static(code: CodeTable, totals: Totals) -> dict[tuple[int, int], int | None]:
    if not code.has_addresses:
        return {}
    row_at = {}
    for row in range(len(code)):
        if not code.isa[row].startswith("; "):
            row_at[int(code.code_object[row]), int(code.vaddr[row])] = row
    edges: dict[tuple[int, int], int | None] = {}
    for row, kind in enumerate(totals.kinds):
        match = _OPERAND.match(code.isa[row]) if kind is InstructionClass.BRANCH else None
        if match is None or not totals.hit[row]:
            continue
        words = int(match[1])
        words -= 0x10000 if words > 0x7FFF else 0
        address = int(code.vaddr[row]) + _BRANCH_BYTES * (1 + words)
        target = row_at.get((int(code.code_object[row]), address))
        if target is not None and target <= row:
            edges[row, target] = None
    return edges


def _by_header(back: Mapping[tuple[int, int], int | None]) -> list[_Range]:
    """Backward branches to one row are one loop that ends at the last of them."""
    last: dict[int, int] = {}
    counts: Counter[int] = Counter()
    known = True
    for (source, target), count in back.items():
        last[target] = max(source, last.get(target, source))
        known = known and count is not None
        counts[target] += count or 0
    return [_Range(first, end, counts[first] if known else None) for first, end in last.items()]


def _loop(loop: _Range, ranges: list[_Range], code: CodeTable, totals: Totals) -> AttLoop:
    rows = slice(loop.first, loop.last + 1)
    header_hits = int(totals.hit[loop.first])
    latency = int(totals.latency[rows].sum())
    idle = None if totals.idle is None else int(totals.idle[rows].sum())
    kinds: Counter[str] = Counter()
    for row in range(loop.first, loop.last + 1):
        kinds[totals.kinds[row].value] += int(totals.hit[row])
    sources = [code.source[row] for row in range(loop.first, loop.last + 1) if code.source[row]]
    return AttLoop(
        first_line=int(code.line[loop.first]),
        last_line=int(code.line[loop.last]),
        source=sources[0] if sources else None,
        depth=sum(other.first <= loop.first and loop.last <= other.last for other in ranges),
        entries=None if loop.iterations is None else header_hits - loop.iterations,
        iterations=header_hits,
        latency=latency,
        stall=None if totals.stall is None else int(np.sum(totals.stall[rows])),
        idle=idle,
        share=totals.fraction(None if idle is None else latency + idle),
        kinds={name: count for name, count in sorted(kinds.items()) if count},
    )


def branch_hints(code: CodeTable, totals: Totals, flow: FlowTotals) -> tuple[AttBranch, ...]:
    """Conditional branches that went both ways or not equally often in all waves, most executed first.

    Only hints at divergence: a thread trace has no execution mask, so lanes are not observable in it.
    """
    outcomes = flow.taken + flow.not_taken
    rows = [row for row in np.flatnonzero(outcomes[:-1]).tolist() if code.isa[row].startswith("s_cbranch")]
    chosen = [row for row in rows if _hint(row, code, flow) is not None]
    chosen.sort(key=lambda row: (-int(outcomes[row]), row))
    return tuple(_branch(row, code, flow) for row in chosen[:_SHOWN_HINTS] if totals.hit[row])


def _branch(row: int, code: CodeTable, flow: FlowTotals) -> AttBranch:
    taken, not_taken = int(flow.taken[row]), int(flow.not_taken[row])
    return AttBranch(
        line=int(code.line[row]),
        isa=code.isa[row],
        source=code.source[row] or None,
        taken=taken,
        not_taken=not_taken,
        taken_fraction=taken / (taken + not_taken),
        fewest_per_wave=int(flow.fewest[row]),
        most_per_wave=int(flow.most[row]),
        hint=_hint(row, code, flow) or "",
    )


def _hint(row: int, code: CodeTable, flow: FlowTotals) -> str | None:
    if flow.fewest[row] != flow.most[row]:
        return "waves reach it differently often: paths or trip counts differ between waves"
    if "exec" in code.isa[row]:
        return "skips code when no lane is left: lanes may diverge before it; counters can tell"
    if flow.taken[row] and flow.not_taken[row]:
        return "goes both ways: a loop's end, or a choice that waves make differently"
    return None
