"""The ``att`` block of one traced dispatch, put together from the single analyses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_att.analysis.hot_spots import branch_hints, hot_instructions, hot_lines, loops
from rpl_att.analysis.totals import (
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
from rpl_att.contract import AttCycles, AttPart, AttWaveStates
from rpl_att.decoded_trace import Level, ThreadTrace
from rpl_att.reduction import ReducedWaves
from rpl_core.text import counted

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
        return _without_figures(trace)
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


def _without_figures(trace: ThreadTrace) -> AttPart:
    """An empty trace must never look like one without stall."""
    unreadable = trace.problems[0] if trace.code is None and trace.problems else _why_unresolved(trace)
    return AttPart(
        **_identity(trace),
        **_occupancy(trace),
        status="unreadable" if unreadable else "empty",
        reason=unreadable or _why_empty(trace),
    )


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
