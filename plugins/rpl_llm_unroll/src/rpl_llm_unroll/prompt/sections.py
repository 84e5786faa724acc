"""Sections of a prompt: what limits the kernel, and what its machine code looks like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_analysis.contracts.analysis import ConditionEvidence, KernelAnalysis
from rpl_analysis.contracts.dag import SpeedupForecastPart
from rpl_analysis.contracts.profile import KernelProfile, ProfileDocument
from rpl_analysis.contracts.roofline import KernelRooflineDoc, RoofPart
from rpl_analysis.text import duration_ns, milliseconds, number, percent
from rpl_core.errors import RplError
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_llm_unroll.prompt.model import (
    NOT_COLLECTED,
    RunFacts,
    Section,
    bullets,
    fenced,
    metric,
    missing,
    sentence,
)
from rpl_transforms.evidence import hot_instructions

if TYPE_CHECKING:
    from rpl_codeobject.disassembly import Instruction, MachineLoop
    from rpl_codeobject.kernel_code import CodeObject


_ROOFLINE, _LABEL = "Roofline", "Bottleneck"
_SHOWN_UNKNOWN = 6
_COSTS = "What the kernel costs"


def roofline_section(facts: RunFacts) -> Section:
    """Per launch, from hardware counters; never invented where none were collected."""
    if facts.roofline is None:
        return Section(_ROOFLINE, missing("no run was given"))
    if facts.roofline.status != "available":
        return Section(_ROOFLINE, missing(facts.roofline.reason))
    work = facts.work
    if work is None:
        return Section(_ROOFLINE, missing("no counters of this kernel"))
    rows = [
        ("operational intensity (FLOP per byte of HBM)", metric(work.operational_intensity, "FLOP/B")),
        ("achieved arithmetic", metric(work.achieved_gflops)),
        ("achieved memory traffic", metric(work.achieved_gbps)),
        ("bound", f"{work.bound or 'not decided'}: {sentence(work.bound_reason)}"),
        ("achieved / attainable at this intensity", metric(work.position, "")),
    ]
    rows += _roof("data-sheet ceilings", work.spec) + _roof(
        f"{work.measured.origin or 'measured'} ceilings", work.measured
    )
    levels = [(f"{level.level} traffic per launch", metric(level.bytes)) for level in work.levels]
    return Section(_ROOFLINE, bullets([*rows, *_types(work), *levels]))


def _roof(name: str, roof: RoofPart) -> list[tuple[str, str]]:
    if roof.peak_gflops is None and roof.peak_gbps is None:
        return []
    ridge = f", ridge at {number(roof.ridge)} FLOP/B" if roof.ridge is not None else ""
    shares = f"compute {metric(roof.compute_share, '')}, memory {metric(roof.memory_share, '')}"
    return [(f"shares of the {name}", f"{shares}{ridge}")]


def _types(work: KernelRooflineDoc) -> list[tuple[str, str]]:
    if not work.types:
        known = "none was counted" if work.flops.value is not None else missing(work.flops.reason)
        return [("operations by data type", known)]
    return [
        (
            f"{t.data_type} operations on {t.pipe} per launch",
            f"{metric(t.operations, '')}, rate {metric(t.gops, '10^9/s')}",
        )
        for t in work.types
    ]


def bottleneck_section(facts: RunFacts, *, evidence: bool = True) -> Section:
    """The label, how sure it is, what decided it and the headroom."""
    if facts.analysis is None:
        return Section(_LABEL, missing("no run was given"))
    label = facts.label
    if label is None:
        return Section(_LABEL, missing("the run has no analysis of this kernel"))
    headroom = missing(label.headroom_reason)
    if label.headroom_fraction is not None:
        source = sentence(label.headroom_source or "an unnamed source")
        headroom = f"{percent(label.headroom_fraction)} of its time (estimate from {source})"
    rows = [
        ("label", f"{label.bottleneck}, confidence {label.confidence}"),
        ("why", sentence(label.reason)),
        ("headroom", headroom),
    ]
    return Section(_LABEL, bullets(rows + (_evidence(label) if evidence else [])))


def _evidence(label: KernelAnalysis) -> list[tuple[str, str]]:
    rows = [
        (f"evidence ({rule.rule})", _condition(part)) for rule in label.evidence for part in rule.conditions
    ]
    rows += [
        (f"nearly ({rule.label}, {rule.rule})", "; ".join(_condition(part) for part in rule.conditions))
        for rule in label.near_misses
    ]
    if label.unknown:
        shown = "; ".join(sentence(text) for text in label.unknown[:_SHOWN_UNKNOWN])
        rest = len(label.unknown) - _SHOWN_UNKNOWN
        rows.append(("not collected", shown + (f"; and {rest} more" if rest > 0 else "")))
    return rows


def _condition(part: ConditionEvidence) -> str:
    value = number(part.value) if part.value is not None else NOT_COLLECTED
    exact = f" ({part.exactness})" if part.exactness and part.exactness != "exact" else ""
    return f"{part.quantity} = {value}{exact}, tested {part.comparison} {part.threshold:g}"


def weight_section(facts: RunFacts) -> Section:
    if facts.profile is None:
        return Section(_COSTS, missing("no run was given"))
    origin = facts.origin or "of unknown origin"
    rows = [("GPU time of the application per run", _runtime(facts.profile, origin))]
    timing = facts.timing
    if timing is None:
        rows.append(("this kernel", missing("the run does not launch it")))
    else:
        rows += _own_time(timing, origin)
    return Section(_COSTS, bullets([*rows, *_path(facts)]))


def _runtime(profile: ProfileDocument, origin: str) -> str:
    if profile.runtime_ms is None:
        return missing(profile.runtime_reason)
    stability = profile.stability
    spread = f", CV {percent(stability.cv, 2)}" if stability.cv is not None else ""
    runs = f", {stability.runs} runs" if stability.runs else ""
    exact = ", an estimate" if profile.runtime_exactness == "estimate" else ""
    return f"{milliseconds(profile.runtime_ms)} ({origin}{exact}{runs}{spread})"


def _own_time(timing: KernelProfile, origin: str) -> list[tuple[str, str]]:
    if timing.runtime_ms is None:
        return [("this kernel per run", missing(timing.runtime_reason))]
    share = (
        f"{percent(timing.time_share)} of the GPU time" if timing.time_share is not None else NOT_COLLECTED
    )
    per_launch = duration_ns(timing.median_ns)
    return [
        ("this kernel per run", f"{milliseconds(timing.runtime_ms)} ({origin}), {share}"),
        ("launches per run", number(timing.launches)),
        ("median of one launch", per_launch if timing.median_ns is not None else NOT_COLLECTED),
    ]


def _path(facts: RunFacts) -> list[tuple[str, str]]:
    if facts.dag is None or facts.dag.status != "available":
        return [("critical path", missing(facts.dag.reason if facts.dag else "no run was given"))]
    own = facts.criticality
    if own is None:
        return [("critical path", missing("this kernel has no entry in the execution graph"))]
    ceiling = "unbounded" if own.speedup_ceiling is None else f"{own.speedup_ceiling:.3g}x"
    share = (
        f"f = {percent(own.criticality_weight)}; ceiling of the path's speed-up by this kernel alone: "
        f"1/(1-f) = {ceiling}"
    )
    rows = [("share of the critical path", share)]
    if own.path_ceiling is not None:
        rows.append(("the same with other paths taking over", f"{own.path_ceiling:.3g}x (modelled)"))
    return rows + [_gain(step) for step in (facts.forecast.speedups if facts.forecast else ())]


def _gain(step: SpeedupForecastPart) -> tuple[str, str]:
    what = "it cost nothing" if step.speedup is None else f"it ran {step.speedup:g} times as fast"
    gain = duration_ns(step.application_gain_ns)
    speedup = "" if step.application_speedup is None else f", {step.application_speedup:.4g}x"
    if step.application_gain_at_most_ns is not None:
        most = duration_ns(step.application_gain_at_most_ns)
        return (f"gain of the application if {what} (modelled)", f"{gain} to {most}: stream order unknown")
    return (f"gain of the application if {what} (modelled)", f"{gain}{speedup}")


# Section on the machine code: the kernel's hottest innermost loop, from the built binary.

_MACHINE_CODE = "Machine code"
#: A loop unrolled by eight still fits; a whole GEMM kernel does not help a reader (chosen).
_SHOWN_INSTRUCTIONS = 160


@frozen
class _Code:
    symbol: str
    architecture: str
    instructions: tuple[Instruction, ...]


def machine_code_section(binary: Path | None, facts: RunFacts) -> Section:
    if binary is None:
        return Section(_MACHINE_CODE, missing("no built program was given"))
    try:
        code = _find_code(binary, facts)
    except RplError as error:
        return Section(_MACHINE_CODE, missing(error.fact.replace(str(binary), binary.name)))
    if code is None:
        return Section(_MACHINE_CODE, missing("the built program has no code of this kernel"))
    return Section(_MACHINE_CODE, _extract(code, _hot_texts(facts)))


def _find_code(binary: Path, facts: RunFacts) -> _Code | None:
    """The kernel's instructions for the device of the run, else of the first code object that has it."""
    from rpl_codeobject.demangle import demangled
    from rpl_codeobject.disassembly import disassemble, find_disassembler
    from rpl_codeobject.reading import read_code_objects

    objects = read_code_objects(binary)
    tool = find_disassembler()
    for code in sorted(objects, key=lambda c: c.architecture != facts.architecture):  # a stable sort
        shown = demangled([kernel.name for kernel in code.kernels])
        symbol = _symbol(code, shown, facts)
        if symbol is not None:
            return _Code(symbol, code.architecture, disassemble(code, tool, (symbol,))[symbol])
    return None


def _symbol(code: CodeObject, shown: dict[str, str] | object, facts: RunFacts) -> str | None:
    from rpl_codeobject.kernel_names import is_instance

    names = dict(shown) if isinstance(shown, dict) else {}
    wanted = "".join((facts.recorded or "").removesuffix(".kd").split())
    for kernel in code.kernels:
        if wanted in {"".join(names.get(kernel.name, kernel.name).split()), kernel.name}:
            return kernel.name
    instances = [k.name for k in code.kernels if is_instance(names.get(k.name, k.name), facts.kernel)]
    # Of several instances of a template nobody can tell which one ran.
    return instances[0] if len(instances) == 1 else None


def _hot_texts(facts: RunFacts) -> Counter[str]:
    """Instruction text -> cycles, as far as a plugin traced them."""
    weights: Counter[str] = Counter()
    traced = {"att": facts.timing.att if facts.timing is not None else None}
    for text, cycles in hot_instructions(traced):
        weights[" ".join(text.split())] += cycles
    return weights


def _extract(code: _Code, hot: Counter[str]) -> str:
    from rpl_codeobject.disassembly import find_machine_loops

    every = find_machine_loops(code.instructions)
    loops = _innermost(every)
    head = f"{counted(len(code.instructions), 'instruction')} of {code.architecture}"
    if not loops:
        text = _listing(code.instructions)
        return f"{head}, no loop. From its beginning:\n\n{text}"
    scores = [
        (_score(loop, code.instructions, hot), _depth(loop, every), len(loop.shape), -loop.head)
        for loop in loops
    ]
    loop = loops[scores.index(max(scores))]
    inside = [i for i in code.instructions if loop.head <= i.address <= loop.end]
    if max(scores)[0]:
        why = "the innermost loop with the most traced cycles (matched by instruction text)"
    elif len(loops) == 1:
        why = "its only innermost loop"
    else:
        why = f"the longest of {len(loops)} innermost loops; which is hottest is {missing(None)}"
    return f"{head}. Shown: {why}, {counted(len(inside), 'instruction')}.\n\n{_listing(inside)}"


def _innermost(loops: Sequence[MachineLoop]) -> list[MachineLoop]:
    return [
        loop
        for loop in loops
        if not any(o is not loop and loop.head <= o.head and o.end <= loop.end for o in loops)
    ]


def _depth(loop: MachineLoop, loops: Sequence[MachineLoop]) -> int:
    return sum(outer.head <= loop.head and loop.end <= outer.end for outer in loops)


def _score(loop: MachineLoop, instructions: Sequence[Instruction], hot: Counter[str]) -> int:
    inside = {_instruction_text(i) for i in instructions if loop.head <= i.address <= loop.end}
    return sum(cycles for text, cycles in hot.items() if text in inside)


def _instruction_text(instruction: Instruction) -> str:
    return " ".join(f"{instruction.mnemonic} {instruction.operands}".split())


def _listing(instructions: Sequence[Instruction]) -> str:
    lines = [
        f"{i.address:6x}: {_instruction_text(i)}" + _target(i) for i in instructions[:_SHOWN_INSTRUCTIONS]
    ]
    rest = len(instructions) - len(lines)
    if rest > 0:
        lines.append(f"... {counted(rest, 'more instruction')}")
    return fenced("\n".join(lines), "asm")


def _target(instruction: Instruction) -> str:
    return "" if instruction.target is None else f"  -> {instruction.target:x}"
