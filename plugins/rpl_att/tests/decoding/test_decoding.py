"""Raw traces through the C interface of a decoder, which is a small stand-in here."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from rpl_att.decoding.decode import read_raw_trace
from rpl_core.errors import BadDataError, MissingError


def test_records_become_the_figures_of_a_decoded_folder(recording):
    block = recording.block("SS")
    assert (block.status, block.level, block.layout, block.waves) == ("available", "raw", "rocprofv3", 2)
    assert (block.agent_handle, block.dispatch_id, block.shader_engines) == (7, 4, (0, 1))
    assert block.compute_units == ("SE0 CU1", "SE1 CU1")
    assert (block.cycles.latency, block.cycles.stall, block.cycles.idle) == (144, 88, 16)
    assert (block.cycles.lifetime, block.instructions, block.unresolved_instructions) == (160, 6, 0)
    assert block.wave_states.model_dump() == {"idle": 8, "exec": 24, "wait": 128, "stall": 0}
    assert block.shader_clock_mhz == pytest.approx(2100.0)
    (first, *_) = block.hot_instructions
    assert (first.isa, first.code_object, first.vaddr, first.hits) == ("s_waitcnt lgkmcnt(0)", 5, 0x1008, 2)
    assert all(check.holds is not False for check in block.checks)
    assert "does not name" in block.unavailable["counters"]


def test_no_instruction_is_an_empty_trace_that_says_where_waves_ran(recording):
    block = recording.block("E")
    assert (block.status, block.stall_fraction) == ("empty", None)
    assert "most waves ran on CU 1 of SE 0" in block.reason


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        ("1", "status 1 (error)"),
        ("2", "status 2 (out of resources)"),
        ("3", "status 3 (invalid argument)"),
        ("4", "status 4 (invalid shader data)"),
    ],
)
def test_a_status_is_named(recording, mode, name):
    with pytest.raises(BadDataError, match=name.replace("(", r"\(").replace(")", r"\)")):
        recording.decode(mode)


def test_one_refused_shader_engine_costs_only_itself(recording):
    trace = recording.decode("4S")
    assert [wave.file.shader_engine for wave in trace.waves.waves] == [1]
    assert trace.problems == (
        "the decoder refused 12_7_shader_engine_0_4.att: status 4 (invalid shader data)",
    )


def test_a_crash_is_one_line(recording):
    with pytest.raises(BadDataError, match=r"the trace decoder crashed \(SIGABRT\)"):
        recording.decode("SA")


def test_a_hang_ends_at_the_limit(recording):
    begin = time.monotonic()
    with pytest.raises(BadDataError, match="did not end within 3 s"):
        recording.decode("H", seconds=3)
    assert time.monotonic() - begin < 30


def test_endless_memory_ends_at_the_limit(recording):
    with pytest.raises(BadDataError, match="crashed"):
        recording.decode("M", memory_bytes=2 << 30)


def test_notes_of_the_decoder_are_kept_and_make_the_trace_partial(recording):
    block = recording.block("I")
    notes = block.warnings
    assert (block.status, block.reason) == ("partial", "decoding left 2 doubts, see the warnings")
    assert [note.split(":")[0] for note in notes] == [
        "data was lost while tracing",
        "the trace ends before its waves do",
    ]


def test_an_unmatched_instruction_is_counted_and_in_no_row(recording):
    block = recording.block("U")
    assert (block.instructions, block.unresolved_instructions) == (3, 1)
    assert "1 instruction matches no row" in block.reason
    assert "no instruction at 1 requested address" in block.warnings[0]
    assert "s_endpgm" not in {row.isa for row in block.hot_instructions}


def test_absolute_addresses_are_located_by_the_results_of_the_process(recording):
    from rpl_att.decoding.decode import read_loads
    from rpl_att.decoding.worker import CodeRows

    (trace,) = recording.traces("S")
    entry = {"code_object_id": 5, "load_base": 0x70000000, "load_size": 0x2000, "load_delta": 0x70000000}
    document = {"rocprofiler-sdk-tool": [{"code_objects": [entry, {"code_object_id": "x"}]}]}
    (recording.folder / "13_results.json").write_text(json.dumps({"other": "process"}))
    assert read_loads(trace) == ()
    (recording.folder / "12_results.json").write_text(json.dumps(document))
    rows = CodeRows({}, read_loads(trace))
    assert rows.located(0, 0x70001008) == (5, 0x1008)
    assert rows.located(0, 0x70002000) == (0, 0x70002000)
    assert rows.located(6, 0x70001008) == (6, 0x70001008)


def test_without_code_nothing_is_decoded(recording):
    (recording.folder / "isa_code_object_5.json").unlink()
    with pytest.raises(BadDataError, match="no code object"):
        recording.decode("S")


@pytest.mark.parametrize("table", [[], {"1000": ["s_nop 0", 4]}, {"0x1000": ["s_nop 0"]}, {"0x1000": [4, 4]}])
def test_a_damaged_table_is_said(recording, table):
    recording.table(table)
    with pytest.raises(BadDataError, match="status 4"):
        recording.decode("S")


def test_a_code_object_is_disassembled(recording, rpl_require, tmp_path):
    rpl_require("llvm-objdump-22")
    source = tmp_path / "kernel.s"
    body = ".p2align 8\nkernel:\ns_load_dwordx2 s[2:3], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\ns_endpgm\n"
    source.write_text(f".text\n.globl kernel\n.type kernel,@function\n{body}.size kernel, .-kernel\n")
    (recording.folder / "isa_code_object_5.json").unlink()
    code = recording.folder / "12_gfx942_code_object_id_5.out"
    target = ["--target=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-nogpulib", "-nostdlib"]
    linker = ["-Wl,-Ttext=0x1000", "-Wl,-z,norelro"]
    subprocess.run([rpl_require("clang-22"), *target, *linker, "-o", code, source], check=True)
    block = recording.block("S")
    assert (block.kernel, block.instructions, block.unresolved_instructions) == ("kernel", 3, 0)
    assert {row.isa for row in block.hot_instructions} >= {"s_waitcnt lgkmcnt(0)"}


def test_a_code_object_without_a_disassembler_is_said(recording, monkeypatch):
    (recording.folder / "isa_code_object_5.json").rename(recording.folder / "12_gfx942_code_object_id_5.out")
    monkeypatch.setattr("rpl_codeobject.disassembly.DISASSEMBLERS", ())
    monkeypatch.delenv("ROCM_PATH", raising=False)
    with pytest.raises(MissingError, match="no llvm-objdump found"):
        recording.decode("S")


def test_a_library_that_is_none_is_said(recording, tmp_path, monkeypatch):
    library = tmp_path / "librocprof-trace-decoder.so"
    library.write_text("no library")
    monkeypatch.setenv("RPL_ATT_LIBRARY_PATH", str(library))
    trace = read_raw_trace(recording.traces("S"))
    assert "1 raw .att file was not decoded" in trace.problems[0]
    assert "no usable trace decoder" in trace.problems[0]


def test_analyze_decodes_with_the_library_of_the_user(recording, fake_decoder, monkeypatch, rpl_cli):
    monkeypatch.setenv("RPL_ATT_LIBRARY_PATH", str(fake_decoder))
    recording.traces("SS")
    att = rpl_cli("analyze", recording.folder, "--json").assert_ok().json()["att"]
    assert (att["status"], att["level"], att["waves"], att["instructions"]) == ("available", "raw", 2, 6)
