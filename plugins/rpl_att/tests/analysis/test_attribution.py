"""Small traces with hand-computed answers: latencies, attribution of waits, loops, hints, occupancy."""

from __future__ import annotations

import pytest

GEMM = "v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]"


def rows(*isa: str) -> list[tuple]:
    """Code rows without counts: the checks of counts are not what these tests look at."""
    return [("; k", 0, 0, 0, 0, 0), *((text, 4 * n, 1, 1, 0, 0) for n, text in enumerate(isa))]


LOAD, STORE, WAIT0, WAIT1 = (
    "global_load_dword v0, v1, off",
    "ds_read_b32 v0, v1",
    "s_waitcnt vmcnt(0)",
    "s_waitcnt vmcnt(1)",
)


def test_latency_runs_from_the_issue_of_the_youngest_required_load_to_the_end_of_the_wait(trace_folder):
    trace_folder.code(*rows(LOAD, LOAD, WAIT1, WAIT0))
    wave = [[0, 4, 4, 8, 1], [8, 4, 0, 4, 2], [12, 9, 88, 88, 3], [100, 9, 30, 30, 4]]
    block = trace_folder.wave(wave, 0, 130).block()
    found = block.memory_latency["vmcnt"]
    # First wait ends at 100 and needs the load issued at 0 + 4; second ends at 130 and needs that of 8.
    assert (found.samples, found.mean, found.max) == (2, (96 + 122) / 2, 122)
    assert [(w.line, [(p.line, p.deciding_cycles) for p in w.producers]) for w in block.waits] == [
        (3, [(1, 88)]),
        (4, [(2, 30)]),
    ]


def test_idle_counts_from_the_latest_end_so_far(trace_folder):
    """The first instruction ends at 40, after the second one: the third at 50 follows 10 idle cycles."""
    trace_folder.code(*rows("v_nop", "v_nop", "v_nop"))
    block = trace_folder.wave([[0, 6, 0, 40, 1], [4, 6, 0, 4, 2], [50, 6, 0, 4, 3]], 0, 54).block()
    assert block.cycles.idle == 10


def test_a_wait_that_did_not_wait_gives_no_latency(trace_folder):
    trace_folder.code(*rows(LOAD, WAIT0))
    block = trace_folder.wave([[0, 4, 0, 4, 1], [4, 9, 4, 4, 2]], 0, 8).block()
    assert block.memory_latency == {}
    assert block.avg_memory_latency is None
    assert "no wait" in block.unavailable["avg_memory_latency"]
    assert block.waits[0].producers[0].line == 1  # the attribution stays


def test_scalar_loads_give_no_latency_and_resolve_at_zero_only(trace_folder):
    trace_folder.code(
        *rows("s_load_dword s0, s[2:3], 0x0", STORE, "s_waitcnt lgkmcnt(1)", "s_waitcnt lgkmcnt(0)")
    )
    wave = [[0, 1, 0, 4, 1], [4, 5, 0, 4, 2], [8, 9, 40, 40, 3], [48, 9, 40, 40, 4]]
    block = trace_folder.wave(wave, 0, 88).block()
    assert block.memory_latency == {}
    assert {w.line: [p.line for p in w.producers] for w in block.waits} == {3: [], 4: [2, 1]}


def test_a_flat_load_is_resolved_by_either_counter(trace_folder):
    trace_folder.code(*rows("flat_load_dword v0, v[1:2]", WAIT0, "s_waitcnt lgkmcnt(0)"))
    wave = [[0, 4, 0, 4, 1], [4, 9, 40, 40, 2], [44, 9, 4, 4, 3]]
    block = trace_folder.wave(wave, 0, 48).block()
    assert {w.line: [p.line for p in w.producers] for w in block.waits} == {2: [1], 3: []}


def test_nothing_is_sure_to_have_returned_beside_a_flat_load_until_that_is_resolved(trace_folder):
    """Memory or LDS answers a flat load: docs/reference/thread-trace.md, 2.6."""
    trace_folder.code(*rows("flat_load_dword v0, v[1:2]", LOAD, WAIT1, "s_waitcnt lgkmcnt(0)", LOAD, WAIT1))
    wave = [[0, 4, 0, 4, 1], [4, 4, 0, 4, 2], [8, 9, 40, 40, 3], [48, 9, 40, 40, 4]]
    block = trace_folder.wave([*wave, [88, 4, 0, 4, 5], [92, 9, 40, 40, 6]], 0, 132).block()
    assert {w.line: [p.line for p in w.producers] for w in block.waits} == {3: [], 4: [1], 6: [2]}
    found = block.memory_latency["vmcnt"]
    assert (found.samples, found.max) == (1, 132 - 4)
    assert "lgkmcnt" not in block.memory_latency


def test_one_wave_does_not_wait_for_the_loads_of_another(trace_folder):
    trace_folder.code(*rows(LOAD, WAIT0))
    trace_folder.wave([[0, 4, 0, 4, 1]], 0, 4)
    block = trace_folder.wave([[0, 9, 40, 40, 2]], 0, 40).block()
    assert block.waits[0].producers == ()


def test_nested_loops_with_entries_and_iterations(trace_folder):
    """Outer loop twice, inner loop three times each: lines 1 outer head, 2 inner head, 3 and 4 branches."""
    trace_folder.code(
        *rows("s_mov_b32 s0, 0", "v_nop", "s_cbranch_scc1 65534", "s_cbranch_scc0 65532", "s_endpgm")
    )
    wave, clock = [], 0
    for outer in range(2):
        sequence = [(1, 2)] + [(2, 6), (3, 7)] * 2 + [(2, 6), (3, 8), (4, 8 if outer else 7)]
        for line, category in sequence:
            wave.append([clock, category, 0, 4, line])
            clock += 4
    outer_loop, inner_loop = trace_folder.wave(wave, 0, clock).block().loops
    assert (outer_loop.first_line, outer_loop.last_line, outer_loop.depth) == (1, 4, 1)
    assert (outer_loop.entries, outer_loop.iterations) == (1, 2)
    assert (inner_loop.first_line, inner_loop.last_line, inner_loop.depth) == (2, 3, 2)
    assert (inner_loop.entries, inner_loop.iterations) == (2, 6)
    assert inner_loop.latency == 48
    assert inner_loop.kinds == {"BRANCH": 6, "VALU": 6}


def test_branches_that_differ_between_waves_are_hinted_at(trace_folder):
    trace_folder.code(*rows("s_cbranch_scc1 1", "v_nop", "s_cbranch_execz 1", "s_endpgm"))
    trace_folder.wave([[0, 7, 0, 4, 1], [4, 8, 0, 4, 3], [8, 11, 0, 4, 4]], 0, 12)
    wave = [[0, 8, 0, 4, 1], [4, 6, 0, 4, 2], [8, 8, 0, 4, 3], [12, 11, 0, 4, 4]]
    block = trace_folder.wave(wave, 0, 16).block()
    assert not block.loops  # the branches that were taken go forward
    hints = {hint.line: hint for hint in block.branch_hints}
    assert (hints[1].taken, hints[1].not_taken, hints[1].taken_fraction) == (1, 1, 0.5)
    assert "lanes may diverge" in hints[3].hint


def test_issue_utilization_is_a_union_over_the_waves_of_a_simd(trace_folder):
    trace_folder.code(*rows("v_nop", "s_waitcnt vmcnt(0)"))
    trace_folder.wave([[0, 6, 0, 8, 1]], 0, 20)
    block = trace_folder.wave([[4, 6, 0, 8, 1], [12, 9, 0, 8, 2]], 0, 20).block()
    assert block.issue_utilization["VALU"] == pytest.approx(12 / 20)  # [0, 8) and [4, 12) overlap
    assert block.issue_utilization["any"] == pytest.approx(12 / 20)  # waits are no pipe
    assert block.ipc.per_simd == pytest.approx(3 / 20)
    assert block.ipc.per_cu == pytest.approx(3 / 20)  # of one shader engine with one SIMD
    assert block.waves_per_simd == pytest.approx(2.0)


def test_source_lines_take_the_innermost_frame_and_keep_the_callers(trace_folder):
    trace_folder.code(
        ("v_nop", 0, 1, 10, 0, 0, "inner.h:5 -> outer.cpp:9"),
        ("v_nop", 4, 1, 20, 0, 0, "inner.h:5 -> other.cpp:3"),
        ("v_nop", 8, 1, 40, 0, 0, "outer.cpp:9"),
        ("v_nop", 12, 1, 80, 0, 0, ""),
    ).index()
    lines = {line.source: line for line in trace_folder.block().hot_lines}
    assert {name: line.latency for name, line in lines.items()} == {"inner.h:5": 30, "outer.cpp:9": 40}
    assert lines["inner.h:5"].callers == ("other.cpp:3", "outer.cpp:9")


def test_occupancy_over_time(trace_folder):
    events = [
        [0, 1, 0, 0, 1, 1],
        [10, 1, 0, 1, 1, 1],
        [30, 1, 0, 0, 0, 1],
        [40, 1, 0, 1, 0, 1],
        [40, 2, 1, 0, 1, 1],
    ]
    trace_folder.code(*rows("v_nop")).wave([[0, 6, 0, 4, 1]], 0, 4)
    block = trace_folder.file(
        "occupancy.json", {"0": [*events, [50, 2, 1, 0, 0, 1]], "dispatches": {}}
    ).block()
    places = {(o.shader_engine, o.cu, o.simd): (o.mean_waves, o.peak_waves) for o in block.occupancy}
    assert places[0, 1, None] == (pytest.approx((10 + 40 + 10) / 40), 2)
    assert places[0, 2, 1] == (1.0, 1)
    assert places[0, None, None] == (pytest.approx(70 / 50), 2)


def test_mfma_cycles_are_modelled_from_peak_rates_and_say_so(trace_folder):
    """16 x 16 x 16 F16 on gfx942: 2 * 4096 FLOP / (2048 / 4 FLOP per cycle and SIMD) = 16 cycles."""
    trace_folder.code(*rows(GEMM)).wave([[0, 6, 0, 8, 1], [8, 6, 0, 8, 1]], 0, 64)
    known = trace_folder.block("gfx942").mfma_utilization
    assert (known.value, known.origin, known.exactness) == (pytest.approx(32 / 64), "modelled", "estimate")
    unknown = trace_folder.block("gfx1100").mfma_utilization
    assert unknown.value is None
    assert "rates are not known" in unknown.reason


def test_a_contradiction_is_reported(trace_folder, rpl_cli):
    """The code table says 99 cycles where the waves say 4."""
    trace_folder.code(("; k", 0, 0, 0, 0, 0), ("v_nop", 0, 1, 99, 0, 0)).wave([[0, 6, 0, 4, 1]], 0, 4)
    (check,) = [c for c in trace_folder.block().checks if c.name == "counts in wave files = code table"]
    assert (check.holds, check.detail) == (False, "1 row differs in latency")
    outcome = rpl_cli("analyze", trace_folder.path).assert_ok()
    assert "contradicts itself" in outcome.stderr


def test_backpressure_is_the_stall_of_all_instructions_of_a_class(trace_folder):
    trace_folder.code(*rows("v_nop", "v_nop", "s_waitcnt vmcnt(0)"))
    wave = [[0, 6, 4, 8, 1], [8, 6, 2, 8, 2], [16, 9, 4, 4, 3]]
    split = trace_folder.wave(wave, 0, 20).block().stall_split
    assert split.pipe_backpressure == {"VALU": pytest.approx(6 / 20)}  # a wait waits for no pipe
    assert split.pipe_backpressure_fraction == pytest.approx(6 / 20)
