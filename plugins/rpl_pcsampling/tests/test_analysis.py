"""Counts per kernel, line and instruction, the figures of rules, and what other sources know beside them."""

from __future__ import annotations

import csv
from collections import Counter
from types import SimpleNamespace

import attrs
import numpy as np
import pytest

from rpl_analysis.bottleneck import classify
from rpl_analysis.counters.quantities import KernelQuantities, QuantityValue
from rpl_analysis.facts import KERNEL_QUANTITIES
from rpl_analysis.interfaces import Comparison, Condition, Rule
from rpl_core.interfaces.analyzer import AnalysisContext, Fact, Facts
from rpl_core.model.metric import Exactness, Metric, Origin
from rpl_core.model.recording import Recording
from rpl_core.model.trace import TraceRole
from rpl_pcsampling.analyzer import PcSampleAnalyzer
from rpl_pcsampling.counting import sampled_kernels, source_line
from rpl_pcsampling.reader import PcSampleReader
from rpl_pcsampling.reading import GrowingSamples
from rpl_pcsampling.samples import EXTRA, PC_SAMPLES, SAMPLED_ISSUE, SAMPLED_STALLS, Method, Place, Position
from rpl_testkit.contracts import assert_analyzer
from rpl_testkit.traces import make_trace

REASON = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_"
LOAD = Place("global_load_dword v1, v[2:3], off", "/src/a.hip:7", 1, 0x10)
WAIT = Place("s_waitcnt vmcnt(0)", "/src/b.h:3 -> /src/a.hip:7", 1, 0x18)
ADD = Place("v_add_f32_e32 v0, v0, v1", None, 1, 0x1C)


def made(*states, names=None, method=Method.STOCHASTIC):
    """Samples of dispatch 1: (place, issued, reason) each, at moments of their own."""
    growing = GrowingSamples(method)
    for number, (place, issued, reason) in enumerate(states):
        growing.add(growing.place(place, lambda place=place: place), 1, number, 0xFF)
        if method is Method.STOCHASTIC:
            growing.add_state(issued, "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_VALU", REASON + reason, 4)
    return growing.samples({1: "k"} if names is None else names, Position.OFFSET, Origin.MEASURED)


MIXED = ((LOAD, 1, "NONE"),) * 40 + ((WAIT, 0, "WAITCNT"),) * 120 + ((ADD, 0, "ALU_DEPENDENCY"),) * 40


def context(samples, facts=None, **extras):
    trace = make_trace([])
    trace = attrs.evolve(trace, role=TraceRole.THREAD_TRACE, extras={EXTRA: (samples,), **extras})
    return AnalysisContext(Recording(traces=(trace,)), None, facts=Facts(facts or {}))


def analysed(samples, facts=None, **extras):
    outcome = PcSampleAnalyzer().analyze(context(samples, facts, **extras))
    return outcome.facts, [d.code for d in outcome.diagnostics]


def test_lines_and_reasons_of_the_real_table_are_those_of_its_rows(rpl_shared_data):
    path = rpl_shared_data / "pc_sampling" / "pc_sampling_stochastic_debug.csv"
    (inputs,) = PcSampleReader().claim([path])
    (trace,) = PcSampleReader().read(inputs)
    (kernel,) = sampled_kernels(trace.extras[EXTRA][0])
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    lines = Counter(row["Instruction_Comment"] for row in rows)
    assert {line.source: line.samples for line in kernel.lines} == lines
    assert kernel.lines[0].samples == max(lines.values())
    stalled = [row for row in rows if row["Wave_Issued_Instruction"] == "0"]
    assert (kernel.samples, kernel.issued, kernel.stalled) == (97, 97 - len(stalled), len(stalled))
    reasons = Counter(row["Stall_Reason"].removeprefix(REASON).lower() for row in stalled)
    assert {one.reason: one.samples for one in kernel.stalls if one.samples} == reasons
    waves = [int(row["Wave_Count"]) for row in rows]
    assert kernel.waves == pytest.approx(sum(waves) / len(waves))
    top = kernel.lines[0]
    own = [int(r["Wave_Count"]) for r in rows if r["Instruction_Comment"] == top.source]
    assert top.waves == pytest.approx(sum(own) / len(own))
    assert kernel.status == "available"


def test_host_trap_samples_tell_nothing_of_stalls_and_too_few_are_called_so(rpl_shared_data):
    path = rpl_shared_data / "pc_sampling" / "pc_sampling_host_trap.csv"
    (inputs,) = PcSampleReader().claim([path])
    (trace,) = PcSampleReader().read(inputs)
    (kernel,) = sampled_kernels(trace.extras[EXTRA][0])
    assert (kernel.issued, kernel.stalled, kernel.stalls, kernel.waves) == (None,) * 4
    assert set(kernel.unavailable) == {"issued", "stalls", "waves"}
    assert kernel.status == "too_few_samples"
    assert "79 samples" in kernel.reason
    assert all(place.stalls is None for place in kernel.places)
    assert (kernel.lines, kernel.ticks) == ((), 25)
    assert "-g" in kernel.lines_reason


def test_a_line_counts_for_the_innermost_frame_and_without_one_for_none():
    assert source_line("/src/b.h:3 -> /src/a.hip:7") == "/src/b.h:3"
    assert source_line("/src/a.hip:0") is None
    assert source_line("label") is None
    (kernel,) = sampled_kernels(made(*MIXED))
    assert [(line.source, line.samples) for line in kernel.lines] == [
        ("/src/b.h:3", 120),
        ("/src/a.hip:7", 40),
    ]
    assert sum(line.samples for line in kernel.lines) + 40 == kernel.samples


def test_rows_of_few_samples_say_so():
    (kernel,) = sampled_kernels(made(*MIXED, (Place("s_endpgm", None, 1, 0x90), 1, "NONE")))
    assert [place.too_few for place in kernel.places] == [False, False, False, True]


def test_figures_are_intervals_that_rules_can_test():
    facts, codes = analysed(made(*MIXED))
    wait = facts[SAMPLED_STALLS["waitcnt"]]["k"]
    assert (wait.exactness, wait.origin, wait.unit) == (Exactness.INTERVAL, Origin.MEASURED, "fraction")
    assert wait.value < 0.6 < wait.upper
    assert facts[SAMPLED_ISSUE]["k"].value < 0.2 < facts[SAMPLED_ISSUE]["k"].upper
    never = facts[SAMPLED_STALLS["barrier_wait"]]["k"]
    assert never.value == 0
    assert 0 < never.upper < 0.02
    assert codes == []
    figures = Facts(facts).figures("k")  # what the classifier is given
    for threshold, label in ((0.5, "x:waits"), (0.6, "unclassified"), (0.7, "unclassified")):
        condition = Condition("sampled_waitcnt_fraction", Comparison.AT_LEAST, threshold, "chosen")
        found = classify("k", figures, [Rule("waits", "x:waits", 1, (condition,), "waits for memory")])
        assert getattr(found.label, "value", found.label) == label  # the interval holds 0.6: not decided
    assert {fact.name for fact in SAMPLED_STALLS.values()} == {
        *("sampled_no_instruction_available_fraction", "sampled_alu_dependency_fraction"),
        *("sampled_waitcnt_fraction", "sampled_internal_instruction_fraction"),
        *("sampled_barrier_wait_fraction", "sampled_arbiter_not_win_fraction"),
        *("sampled_arbiter_win_ex_stall_fraction", "sampled_other_wait_fraction"),
        "sampled_sleep_wait_fraction",
    }


def test_too_few_samples_are_no_figure():
    facts, codes = analysed(made(*MIXED[:60]))
    assert facts[SAMPLED_ISSUE]["k"].value is None
    assert "too few samples: 60" in facts[SAMPLED_ISSUE]["k"].reason
    assert codes == ["pcsampling.too_few_samples"]


def test_samples_without_a_kernel_give_no_figure_and_one_warning():
    facts, codes = analysed(made(*MIXED, names={}))
    assert list(facts[PC_SAMPLES]) == [""]
    assert facts[SAMPLED_ISSUE] == {}
    assert codes == ["pcsampling.unnamed_kernels"]


def test_without_samples_there_is_nothing():
    empty = AnalysisContext(Recording(traces=(make_trace([]),)), None)
    outcome = PcSampleAnalyzer().analyze(empty)
    assert outcome.facts[PC_SAMPLES] == {}
    assert outcome.facts[SAMPLED_ISSUE] is None


def test_the_contract_of_analyzers_holds():
    assert_analyzer(PcSampleAnalyzer(), context(made(*MIXED)))


def test_other_sources_stand_beside_the_same_instruction_only():
    row = SimpleNamespace(
        vaddr=0x18, isa="s_waitcnt  vmcnt(0)", source=WAIT.source, share=0.5, hits=8, latency=900, stall=800
    )
    other = SimpleNamespace(
        vaddr=0x10, isa="s_nop 0", source=LOAD.source, share=0.1, hits=1, latency=1, stall=0
    )
    heat = SimpleNamespace(
        kernel="k",
        places=[
            SimpleNamespace(address=0x1C, opcode="v_add_f32", executed=64, lanes=4096),
            SimpleNamespace(address=0x10, opcode="s_nop", executed=3, lanes=None),
        ],
        lines=[SimpleNamespace(source="/src/a.hip", line=7, executed=12)],
    )
    quantity = Metric(0.4, "fraction", Exactness.EXACT, Origin.MEASURED)
    value = QuantityValue(quantity, quantity, 3)
    facts, _ = analysed(
        made(*MIXED),
        {
            Fact("att"): {"k": SimpleNamespace(hot_instructions=(row, other))},
            KERNEL_QUANTITIES: {"k": KernelQuantities("k", 3, {"dependency_wait_fraction": value})},
        },
        instruction_heat=(SimpleNamespace(kernels=(heat,)),),
    )
    ((kernel,),) = facts[PC_SAMPLES].values()
    wait, load, add = kernel.places
    assert (wait.trace.latency, wait.trace.hits, wait.executed) == (900, 8, None)
    assert (load.trace, load.executed) == (None, None)  # the address holds another instruction there
    assert (add.executed, add.executed_lanes) == (64, 4096)
    assert {line.source: line.executed for line in kernel.lines} == {"/src/b.h:3": None, "/src/a.hip:7": 12}
    assert kernel.counters["dependency_wait_fraction"].value == 0.4


def test_columns_without_a_sample_make_no_kernel():
    samples = attrs.evolve(made(*MIXED), kernel=np.zeros(0, np.int32), place=np.zeros(0, np.int32))
    assert list(sampled_kernels(samples)) == []
