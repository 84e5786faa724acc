"""Figures of real traces against those that were computed independently.

See docs/reference/thread-trace.md, 5.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

#: sample: waves, instructions, life, latency, stall, idle, stall/T, idle/T, IPC per SIMD, waves per SIMD
TABLE = {
    "wave_gemm": (16, 3552, 86636, 69288, 53320, 17412, 0.614994, 0.200830, 0.081163, 1.979618),
    "aiter": (12, 107628, 1401712, 1353636, 900748, 48364, 0.642474, 0.034496, 0.076738, 0.999412),
    "flashmla": (4, 54500, 788952, 458880, 221668, 330084, 0.280961, 0.418377, 0.069079, 1.0),
    "gfx1100": (10, 590, 39093, 32875, 29252, 6228, 0.748076, 0.159272, 0.071829, None),
    "gfx1200": (16, 976, 79761, 67878, 61942, 11899, 0.776439, 0.149153, 0.091369, None),
    "gfx950_tinygrad": (4, 232, 15092, 12512, 10660, 2584, 0.706147, 0.171171, 0.015372, None),
}


@pytest.mark.parametrize("name", TABLE)
def test_sums_and_fractions(att_of, name):
    waves, instructions, life, latency, stall, idle, stalled, idled, ipc, resident = TABLE[name]
    block = att_of(name)
    assert (block.waves, block.instructions) == (waves, instructions)
    cycles = block.cycles
    assert (cycles.lifetime, cycles.latency, cycles.stall, cycles.idle) == (life, latency, stall, idle)
    assert block.stall_fraction == pytest.approx(stalled, abs=5e-7)
    assert block.idle_fraction == pytest.approx(idled, abs=5e-7)
    assert block.issue_fraction + block.stall_fraction + block.idle_fraction == pytest.approx(1)
    assert block.ipc.per_simd == pytest.approx(ipc, abs=1e-6)
    if resident is not None:
        assert block.waves_per_simd == pytest.approx(resident, abs=5e-7)


@pytest.mark.parametrize(
    ("name", "counter", "mean", "median", "samples"),
    [
        ("wave_gemm", "vmcnt", 717.5, 628, 39),
        ("wave_gemm", "lgkmcnt", None, 152, None),
        ("aiter", "vmcnt", 2178.0, 2088, 396),
        ("aiter", "lgkmcnt", None, 52, None),
        ("flashmla", "vmcnt", 644.1, 548, 340),
        ("gfx1100", "vmcnt", 1518.5, 1513.5, 18),
        ("gfx1100", "lgkmcnt", None, 43, None),
        ("gfx950_tinygrad", "vmcnt", 1786, 1784, 4),
        ("gfx950_tinygrad", "lgkmcnt", None, 56, None),
    ],
)
def test_memory_latency(att_of, name, counter, mean, median, samples):
    found = att_of(name).memory_latency[counter]
    assert found.median == median
    if mean is not None:
        assert found.mean == pytest.approx(mean, abs=0.05)
        assert found.samples == samples
        assert att_of(name).avg_memory_latency == found.mean


def test_instruction_mix_of_the_gemm(att_of):
    hits = {kind: entry.hits for kind, entry in att_of("wave_gemm").instruction_mix.items()}
    assert hits == {
        "VALU": 1632,
        "SALU": 592,
        "WAITCNT": 288,
        "VMEM": 256,
        "LDS": 256,
        "INTERNAL": 208,
        "BARRIER": 160,
        "MFMA": 128,
        "BRANCH": 32,
    }


def test_class_cycles_of_the_gemm(att_of):
    mix = att_of("wave_gemm").instruction_mix
    assert {kind: entry.latency for kind, entry in mix.items()} == {
        "WAITCNT": 20932,
        "BARRIER": 20432,
        "VALU": 12580,
        "INTERNAL": 5292,
        "LDS": 3652,
        "VMEM": 2864,
        "SALU": 2696,
        "MFMA": 704,
        "BRANCH": 136,
    }
    assert mix["VALU"].stall == 5916


def test_wave_states_of_the_gemm(att_of):
    states = att_of("wave_gemm").wave_states
    assert (states.idle, states.exec, states.wait, states.stall) == (14396, 14756, 46656, 10860)


def test_counters_and_utilisation_of_the_gemm(att_of):
    block = att_of("wave_gemm")
    assert block.counters == {
        "SQ_BUSY_CU_CYCLES": 178893,
        "SQ_VALU_MFMA_BUSY_CYCLES": 32768,
        "SQ_ACTIVE_INST_VALU": 28160,
        "SQ_ACTIVE_INST_LDS": 4096,
        "SQ_ACTIVE_INST_VMEM": 3072,
        "SQ_ACTIVE_INST_FLAT": 1024,
        "SQ_ACTIVE_INST_SCA": 9472,
        "SQ_ACTIVE_INST_MISC": 3328,
    }
    assert block.valu_utilization.value == pytest.approx(0.1574, abs=5e-5)
    assert block.mfma_utilization.value == pytest.approx(0.0458, abs=5e-5)
    assert block.mfma_utilization.origin == "measured"
    assert block.issue_utilization["MFMA"] == pytest.approx(0.0117, abs=5e-5)


def test_stall_split_of_the_gemm_adds_up(att_of):
    """Waits, barriers and internal instructions with their whole latency, the pipes with their stall."""
    block, split = att_of("wave_gemm"), att_of("wave_gemm").stall_split
    total = 69288 + 17412
    assert split.memory_wait_fraction == pytest.approx(20932 / total)
    assert sum(split.memory_wait.values()) == pytest.approx(split.memory_wait_fraction)
    assert split.barrier_fraction == pytest.approx(20432 / total)
    assert split.internal_fraction == pytest.approx(5292 / total)
    assert split.startup_fraction == pytest.approx(14396 / total)  # equals the state IDLE
    # Stall of VALU 5916, MFMA 192, SALU 260, VMEM 1772, LDS 2596 and BRANCH 4 (the recorded stall column).
    assert split.pipe_backpressure_fraction == pytest.approx(10740 / total)
    assert split.pipe_backpressure["VALU"] == pytest.approx(5916 / total)
    assert "WAITCNT" not in split.pipe_backpressure
    assert block.headroom_fraction == pytest.approx((20932 + 17412) / total)


@pytest.mark.parametrize("name", ["wave_gemm", "aiter", "flashmla", "gfx1100", "gfx1200", "gfx950_tinygrad"])
def test_every_check_holds(att_of, name):
    block = att_of(name)
    assert [check.name for check in block.checks if check.holds is False] == []
    (equal,) = [check for check in block.checks if check.name == "counts in wave files = code table"]
    assert equal.holds
    assert (block.status, block.reason) == ("available", None)


@pytest.mark.parametrize("name", ["wave_gemm", "aiter"])
def test_replayed_waits_are_those_of_the_decoder(att_of, name):
    (check,) = [c for c in att_of(name).checks if c.name == "replayed waits = decoder's waits"]
    assert check.holds


def test_activity_counters_equal_instruction_counts(att_of):
    found = {c.name.split()[0]: c for c in att_of("wave_gemm").checks if c.name.startswith("SQ_")}
    expected = {"VALU": 256 * 110, "LDS": 256 * 16, "VMEM": 256 * 12, "FLAT": 256 * 4}
    assert set(found) == {f"SQ_ACTIVE_INST_{name}" for name in expected}
    for name, count in expected.items():
        check = found[f"SQ_ACTIVE_INST_{name}"]
        assert check.holds
        assert check.detail == f"{count} counted, {count} expected for 256 waves"


def test_hot_lines_add_up_the_rows_of_a_line(att_of, att_folder):
    rows = json.loads((att_folder("aiter") / "code.json").read_text())["code"]
    latency = {}
    for row in rows:
        latency[row[3]] = latency.get(row[3], 0) + row[7]
    found = {line.source: line.latency for line in att_of("aiter").hot_lines}
    assert found
    assert all(latency[source] == cycles for source, cycles in found.items())


def test_stats_table_gives_the_same_sums_as_code(att_folder, tmp_path: Path, att_of):
    """Only the CSV is there: sums are those of its columns, and what needs waves says so."""
    from rpl_att.analysis.att_block import att_block
    from rpl_att.decoded_trace import read_decoded_trace

    source = att_folder("wave_gemm")
    folder = tmp_path / source.name
    folder.mkdir()
    csv_path = tmp_path / f"stats_{source.name}.csv"
    csv_path.write_bytes((source.parent / csv_path.name).read_bytes())
    (folder / "filenames.json").write_text('{"gfxip": 9, "version": "3.0.0", "wave_filenames": null}')
    block = att_block(read_decoded_trace(folder), None)
    with csv_path.open(newline="") as stream:
        records = list(csv.DictReader(stream))
    assert block.level == "stats"
    assert block.cycles.latency == sum(int(r["Latency"]) for r in records)
    assert block.stall_fraction == pytest.approx(att_of("wave_gemm").stall_fraction)
    assert block.ipc is None
    assert {"ipc", "loops", "memory_latency"} <= set(block.unavailable)
