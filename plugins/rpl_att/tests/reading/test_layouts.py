"""Every layout that was met is read; what a layout can't give is null with the reason."""

from __future__ import annotations

import pytest

from rpl_att.reading import TraceFolder, files_beside


def test_eight_columns_without_waves_have_no_stall(att_folder, tmp_path):
    from rpl_att.analysis.att_block import att_block
    from rpl_att.decoded_trace import read_decoded_trace

    folder = tmp_path / "ui_output_agent_34975_dispatch_20"
    folder.mkdir()
    (folder / "code.json").write_bytes((att_folder("aiter") / "code.json").read_bytes())
    block = att_block(read_decoded_trace(folder), None)
    assert (block.level, block.status) == ("code", "partial")
    assert block.cycles.latency == 1353636
    assert block.cycles.stall is None
    assert (block.stall_fraction, block.idle_fraction, block.headroom_fraction) == (None, None, None)
    assert "8 columns" in block.unavailable["stall_fraction"]
    assert "no idle" in block.unavailable["idle_fraction"]


def test_ten_columns_without_waves_have_stall_and_no_ipc(att_of):
    block = att_of("aiter_10col")
    assert block.level == "code"
    assert block.stall_fraction == pytest.approx(0.642474, abs=5e-7)
    assert block.ipc is None
    assert block.unavailable["ipc"]


def test_static_loops_are_those_that_waves_ran(att_of):
    """The code table alone gives the loop of the branch's operand; waves give the one they ran."""
    (static,), (ran,) = att_of("aiter_10col").loops, att_of("aiter").loops
    assert (static.first_line, static.last_line, static.iterations) == (519, 787, 372)
    assert (ran.first_line, ran.last_line, ran.iterations) == (519, 787, 372)
    assert (ran.entries, static.entries) == (12, None)  # 12 waves


def test_rocprofv2_has_no_comparable_stall(att_of):
    block = att_of("flashmla_v2")
    assert block.layout == "rocprofv2"
    assert block.waves == 4
    assert block.waves_missing == 28
    assert block.instructions == 54496
    assert block.stall_fraction is None
    assert "rocprofv2" in block.unavailable["stall_fraction"]
    assert block.instruction_mix["VALU"].stall is None


def test_rocprofv2_gives_the_mix_of_the_same_waves_decoded_anew(att_of):
    old = {kind: entry.hits for kind, entry in att_of("flashmla_v2").instruction_mix.items()}
    new = {kind: entry.hits for kind, entry in att_of("flashmla").instruction_mix.items()}
    new["INTERNAL"] -= 4  # s_endpgm of four waves, which rocprofv2 leaves out
    assert old == new


def test_packed_and_explicit_occupancy_events_agree(att_folder):
    """The early packed file against the newer form of the same trace: equal to 8 cycles."""
    from rpl_att.reading import TraceFolder
    from rpl_att.reading.wave_files import read_occupancy

    packed = read_occupancy(TraceFolder.at(att_folder("aiter")))
    explicit = read_occupancy(TraceFolder.at(att_folder("aiter_10col")))
    assert [e.shader_engine for e in packed.engines] == [e.shader_engine for e in explicit.engines]
    for old, new in zip(packed.engines, explicit.engines, strict=True):
        events = [sorted(zip(e.time // 8, e.cu, e.simd, e.slot, e.start, strict=True)) for e in (old, new)]
        assert events[0] == events[1]


def test_a_pc_sampling_folder_is_no_thread_trace_without_stall(att_of):
    block = att_of("pcsampling")
    assert block.status == "empty"
    assert "PC samples" in block.reason
    assert block.stall_fraction is None


def test_an_empty_trace_says_so_and_names_a_better_target(att_of):
    block = att_of("empty")
    assert block.status == "empty"
    assert "--att-target-cu 4 --att-shader-engine-mask 0x4" in block.reason
    assert block.kernel == "E"
    figures = (block.cycles, block.stall_fraction, block.idle_fraction, block.headroom_fraction, block.ipc)
    assert figures == (None,) * 5


ROWS = [["; k", 0, 0, "k()", 1, 0], ["s_nop 0", 0, 1, "a.cpp:1", 1, 0], ["s_endpgm", 0, 2, "a.cpp:2", 1, 4]]


@pytest.mark.parametrize("header_kind", ["text", "list", "absent"])
@pytest.mark.parametrize("columns", [8, 10, 13, 14])
def test_columns_are_found_by_header_and_row_length(trace_folder, columns, header_kind):
    names = ["ISA", "_", "LineNumber", "Source", "Codeobj", "Vaddr", "Hit", "Latency", "Stall", "Idle"]
    more = {13: ["PC_Issued", "PC_Stalled", "Stall_Reasons"], 14: ["ServiceType", "Issued", "Stalled", "Not"]}
    header = [*names[: min(columns, 10)], *more.get(columns, [])]
    values = [[0, 0, 0, 0], [5, 40, 20, 3], [5, 400, 0, 0]]
    tails = {8: [], 10: [], 13: [1, 2, [0, 1]], 14: ["x", 1, 2, [0]]}
    rows = [
        [*start, *value[: min(columns, 10) - 6], *tails[columns]]
        for start, value in zip(ROWS, values, strict=True)
    ]
    given = {"text": {"header": ", ".join(header)}, "list": {"header": header}, "absent": {}}[header_kind]
    trace_folder.file("code.json", {"code": rows, "version": "3.0.0", **given}).index()
    block = trace_folder.block()
    if header_kind == "absent" and columns > 10:
        assert block.status == "unreadable"
        assert f"rows of {columns} columns" in block.reason
        return
    assert block.cycles.latency == 440
    assert block.cycles.stall == (None if columns == 8 else 20)
    assert block.kernel == "k()"


@pytest.mark.parametrize(
    "lines",
    [
        [
            '"CodeObj","Vaddr","Instruction","Hitcount","Latency","Stall","Idle","Source"',
            '1,0,"s_nop 0",5,40,20,3,"a:1"',
        ],
        [
            '"CodeObj","Vaddr","Instruction","Hitcount","Latency","Stall","Idle","ServiceType","Issued","Stalled","Source"',
            '1,0,"s_nop 0",5,40,20,3,"x",1,2,"a:1"',
        ],
        [
            '"Source","Idle","Stall","Latency","Hitcount","Instruction","Vaddr","Codeobj"',
            '"a:1",3,20,40,5,"s_nop 0",0,1',
        ],
    ],
)
def test_stats_columns_are_found_by_name(trace_folder, lines):
    trace_folder.index()
    stats = trace_folder.path.parent / f"stats_{trace_folder.path.name}.csv"
    stats.write_text("\n".join(lines) + "\n")
    block = trace_folder.block()
    assert (block.level, block.cycles.stall, block.cycles.total) == ("stats", 20, 43)
    assert block.hot_lines[0].source == "a:1"


def test_the_early_statistics_have_spaces_and_no_stall(trace_folder):
    trace_folder.index()
    text = 'CodeObj, Vaddr, Instruction, Hitcount, Latency, Source\n1, 0, "s_nop 0", 5, 40, "a:1"\n'
    trace_folder.file("att_output.csv", text)
    block = trace_folder.block()
    assert (block.level, block.cycles.latency, block.stall_fraction) == ("stats", 40, None)


def test_statistics_with_a_header_only_are_an_empty_trace(trace_folder):
    trace_folder.index().file("code.json", {"code": None, "header": "x", "version": "3.0.0"})
    stats = trace_folder.path.parent / f"stats_{trace_folder.path.name}.csv"
    stats.write_text('"CodeObj","Vaddr","Instruction","Hitcount","Latency","Stall","Idle","Source"\n')
    block = trace_folder.block()
    assert block.status == "empty"
    assert block.stall_fraction is None


@pytest.mark.parametrize("name", ["gfx942_elementwise_rocprofv2", "gfx950_wave_gemm/smci350-zts-gtu-b20-05"])
def test_raw_traces_are_recognised_and_said_to_be_undecoded(rpl_shared_data, rpl_cli, name, monkeypatch):
    monkeypatch.setattr("rpl_att.decoding.decode.find_decoder", lambda _: None)
    folder = rpl_shared_data / "att" / name
    att = rpl_cli("analyze", folder, "--json").assert_ok().json()["att"]
    assert (att["status"], att["level"]) == ("empty", "raw")
    assert "raw .att files were not decoded" in att["reason"]


def test_waves_inside_the_archive_of_rocprofv2_are_read(rpl_shared_data, tmp_path):
    """The shipped folder is packed; 564 waves of a fill kernel."""
    import tarfile

    from rpl_att.analysis.att_block import att_block
    from rpl_att.decoded_trace import read_decoded_trace
    from rpl_gfx942.products import FACTS

    (archive,) = (rpl_shared_data / "att" / "gfx942_elementwise_rocprofv2").glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    block = att_block(read_decoded_trace(folder), FACTS)
    assert (block.layout, block.waves, block.waves_missing) == ("rocprofv2", 564, 0)
    assert block.stall_fraction is None


def _rocprofv2(trace_folder, rows):
    return trace_folder.file("code.json", {"code": rows, "top_n": 1})


@pytest.mark.parametrize("key", [2, 4])
def test_the_key_of_a_row_may_be_another_column_in_rocprofv2(trace_folder, key):
    """Early 2024 has the target of a branch where later releases have the key of the row."""
    rows = [["; k", 100, 0, "", 0, 0, 0, 0]]
    for number, isa in enumerate(("s_load_dword s0, s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", "v_nop"), 1):
        row = [isa, 1, 0, "", 0, number, 1, 4]
        row[key] = number
        rows.append(row)
    waited = [[0, 1, 0, 4, 1], [4, 6, 0, 96, 2], [100, 6, 0, 4, 3]]
    block = _rocprofv2(trace_folder, rows).wave(waited, 0, 104).block()
    assert (block.status, block.unresolved_instructions) == ("available", 0)
    assert [wait.latency for wait in block.waits] == [96]


def test_rows_that_no_column_tells_apart_are_refused(trace_folder):
    rows = [["v_nop", 1, 0, "", 0, number, 1, 4] for number in range(3)]
    block = _rocprofv2(trace_folder, rows).wave([[0, 6, 0, 4, 1]], 0, 4).block()
    assert (block.stall_split, block.instruction_mix, block.waits) == (None, {}, ())
    assert "no table of instructions" in block.unavailable["stall_split"]
    assert any("unknown layout" in warning for warning in block.warnings)


def test_a_trace_of_which_most_matches_no_row_gives_no_shares(trace_folder):
    trace_folder.code(("v_nop", 0, 1, 4, 0, 0)).wave([[4 * i, 6, 0, 4, 50 + i] for i in range(9)], 0, 36)
    block = trace_folder.block()
    assert (block.status, block.cycles, block.idle_fraction) == ("unreadable", None, None)
    assert "9 of 9 traced instructions match no row" in block.reason


def test_a_wait_that_the_decoder_lists_per_counter_is_one_wait(trace_folder):
    code = [
        ("global_load_dword v0, v[0:1], off", 0, 1, 4, 0, 0),
        ("s_load_dword s0, s[0:1], 0x0", 4, 1, 4, 0, 0),
    ]
    folder = trace_folder.code(*code, ("s_waitcnt vmcnt(0) lgkmcnt(0)", 8, 1, 90, 0, 0))
    waited = [[0, 3, 0, 4, 0], [4, 1, 0, 4, 1], [8, 6, 0, 90, 2]]
    for listed in ([[2, [[0, 1]]], [2, [[1, 1]]]], [[2, [[0, 1], [1, 1]]]], [[2, [[0, 1]]]]):
        block = folder.wave(waited, 0, 98, waitcnt=listed).block()
        (check,) = [one for one in block.checks if one.name.startswith("replayed waits")]
        assert check.holds == (listed != [[2, [[0, 1]]]]), (listed, check)
        folder.tree.clear()


def test_a_store_without_a_known_architecture_counts_as_on_gfx9(trace_folder):
    """``vmcnt`` counts stores up to gfx9, ``vscnt`` from gfx10 on (docs/reference/thread-trace.md, 2.6)."""
    store, wait = "global_store_dword v[0:1], v2, off", "s_waitcnt vmcnt(0)"
    trace_folder.code((store, 0, 1, 4, 0, 0), (wait, 8, 1, 60, 0, 0))
    block = trace_folder.wave([[10, 7, 0, 4, 0], [14, 9, 0, 60, 1]], 0, 80).index(gfxip=None).block()
    assert block.architecture is None
    # From the issue of the store at 10 to the end of the wait at 74.
    assert {name: found.mean for name, found in block.memory_latency.items()} == {"vmcnt": 64}


def test_clocks_behind_the_first_two_of_a_row_are_ignored(trace_folder):
    """210 clocks in 10 steps of a 100 MHz clock are 2100 MHz; rows may grow, as those of occupancy did."""
    trace_folder.code(("s_endpgm", 0, 1, 4, 0, 0)).wave([[0, 11, 0, 4, 0]], 0, 4)
    rows = [[100, 7, 0], [310, 17, 9]]
    trace_folder.file("realtime.json", {"metadata": {"frequency": 100_000_000}, "0": rows})
    assert trace_folder.block().shader_clock_mhz == pytest.approx(2100)


def test_rows_that_no_wave_ran_are_no_hot_instructions(trace_folder):
    trace_folder.code(("v_nop", 0, 1, 4, 0, 0), ("s_nop 0", 4, 0, 0, 0, 0), ("s_endpgm", 8, 1, 8, 0, 0))
    block = trace_folder.wave([[0, 6, 0, 4, 0], [4, 11, 0, 8, 2]], 0, 12).block()
    assert [(row.isa, row.hits) for row in block.hot_instructions] == [("s_endpgm", 1), ("v_nop", 1)]


@pytest.mark.parametrize(
    ("name", "found"),
    [("ui_output_agent_7_dispatch_4", (7, 4)), ("ui_output_agent_7_dispatch_4_old", (None, None))],
)
def test_the_name_of_a_folder_tells_agent_and_dispatch(tmp_path, name, found):
    folder = TraceFolder.at(tmp_path / name)
    assert (folder.agent_handle, folder.dispatch_id) == found


def test_raw_traces_lie_beside_a_folder_or_one_level_below(tmp_path):
    for name in ("b.att", "host/a.att", "host/123/c.att", "ui_output_agent_1_dispatch_1/d.att"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [path.relative_to(tmp_path).as_posix() for path in files_beside(tmp_path)] == [
        "b.att",
        "host/a.att",
    ]


def test_the_start_of_a_wave_is_no_cost_of_its_first_instruction(trace_folder):
    trace_folder.code(("s_nop 0", 0, 1, 4, 0, 0), ("v_nop", 4, 1, 40, 0, 0))
    block = trace_folder.wave([[500, 6, 0, 4, 0], [504, 6, 0, 40, 1]], 0, 544).block()
    assert [row.isa for row in block.hot_instructions] == ["v_nop", "s_nop 0"]
    assert block.stall_split.startup_fraction == 500 / 544
