"""`rpl att show`, `diff` and `export` on real traces."""

from __future__ import annotations

import json

import pytest


def test_show_lists_instructions_with_cycles_and_what_waits_waited_for(rpl_cli, att_folder):
    text = rpl_cli("att", "show", att_folder("wave_gemm")).assert_ok().stdout
    assert "16 waves on SE0 CU0, SE22 CU0" in text
    (wait,) = [line for line in text.splitlines() if line.split()[:1] == ["156"]]
    assert wait.split()[2:4] == ["16", "8,420"]
    following = text.splitlines()[text.splitlines().index(wait) + 1]
    assert "waited 8,420 cycles for line 135: buffer_load_dword v13" in following
    assert "... 62 instructions that no traced wave executed" in text


def test_show_json_holds_all_rows(rpl_cli, att_folder):
    document = rpl_cli("att", "show", att_folder("wave_gemm"), "--json").assert_ok().json()
    shipped = json.loads((att_folder("wave_gemm") / "code.json").read_text())["code"]
    expected = [(r[2], r[6], r[7], r[8], r[9]) for r in shipped if not r[0].startswith("; ")]
    found = [(i["line"], i["hits"], i["latency"], i["stall"], i["idle"]) for i in document["instructions"]]
    assert found == expected
    assert document["att"]["stall_fraction"] > 0.6
    assert {w["line"] for w in document["waits"]} >= {156, 197}


def test_show_source_sums_by_line(rpl_cli, att_folder):
    text = rpl_cli("att", "show", att_folder("aiter"), "--source").assert_ok().stdout
    (line,) = [row for row in text.splitlines() if row.endswith("gemm_afp4wfp4.py:97")]
    assert line.split()[:2] == ["50.0%", "694,964"]


def test_show_source_shows_the_text_of_a_kept_copy(rpl_cli, trace_folder):
    trace_folder.code(("v_nop", 0, 1, 4, 0, 0, "/src/a.cpp:2")).wave([[0, 6, 0, 4, 0]], 0, 4)
    trace_folder.file("snapshots.json", {"/": {"src": {"a.cpp": "source_0_a.cpp"}}})
    trace_folder.file("source_0_a.cpp", "first\n  x = y + 1;\n")
    text = rpl_cli("att", "show", trace_folder.path, "--source").assert_ok().stdout
    assert "x = y + 1;" in text


def test_show_source_without_debug_information_says_how_to_get_it(rpl_cli, att_folder):
    outcome = rpl_cli("att", "show", att_folder("wave_gemm"), "--source").assert_exit(65)
    assert "build with -g" in outcome.stderr


def test_an_unknown_kernel_is_said_to_be_absent(rpl_cli, att_folder):
    outcome = rpl_cli("att", "show", att_folder("wave_gemm"), "--kernel", "nosuch").assert_exit(69)
    assert "kernel 'nosuch'" in outcome.stderr


def test_several_kernels_need_a_choice(rpl_cli, att_folder):
    outcome = rpl_cli("att", "show", att_folder("wave_gemm").parents[1]).assert_exit(64)
    assert "--kernel" in outcome.stderr


def test_diff_of_a_trace_with_itself_has_no_changed_instruction(rpl_cli, att_folder):
    place = att_folder("wave_gemm")
    document = rpl_cli("att", "diff", place, place, "--json").assert_ok().json()
    assert document["instructions"] == []
    figure = document["figures"]["cycles_per_wave"]
    assert figure["before"] == figure["after"] == (69288 + 17412) / 16


def test_diff_compares_per_wave(rpl_cli, make_folder):
    rows = (("v_nop", 0, 1, 4, 0, 0), ("s_barrier", 4, 1, 4, 0, 0))
    before = make_folder("ui_output_agent_1_dispatch_1").code(*rows)
    before.wave([[0, 6, 0, 4, 0], [4, 9, 16, 16, 1]], 0, 20).wave([[0, 6, 0, 4, 0], [4, 9, 16, 16, 1]], 0, 20)
    after = (
        make_folder("ui_output_agent_1_dispatch_2")
        .code(*rows)
        .wave([[0, 6, 0, 4, 0], [4, 9, 40, 40, 1]], 0, 44)
    )
    document = rpl_cli("att", "diff", before.path, after.path, "--json").assert_ok().json()
    (row,) = document["instructions"]
    assert (row["isa"], row["before"], row["after"], row["change"]) == ("s_barrier", 16.0, 40.0, 24.0)


def test_flamegraph_stacks_add_up_to_all_cycles(rpl_cli, att_folder):
    text = rpl_cli("att", "export", att_folder("aiter"), "--format", "flamegraph").assert_ok().stdout
    lines = text.splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == 1353636 + 48364
    assert all(line.startswith("_gemm_afp4_wfp4_kernel;") for line in lines)


def test_speedscope_document_has_the_same_weights(rpl_cli, att_folder, tmp_path):
    target = tmp_path / "out.speedscope.json"
    rpl_cli("att", "export", att_folder("aiter"), "-o", target).assert_ok()
    document = json.loads(target.read_text())
    (profile,) = document["profiles"]
    assert profile["endValue"] == sum(profile["weights"]) == 1353636 + 48364
    frames = document["shared"]["frames"]
    assert all(0 <= index < len(frames) for sample in profile["samples"] for index in sample)


def test_analysis_of_one_folder_is_the_same_each_time(rpl_cli, att_folder, tmp_path):
    for name in ("a", "b"):
        rpl_cli("analyze", att_folder("wave_gemm"), "-o", tmp_path / name).assert_ok()
    assert (tmp_path / "a" / "profile.json").read_bytes() == (tmp_path / "b" / "profile.json").read_bytes()


def test_the_text_report_shows_the_trace(rpl_cli, att_folder):
    text = rpl_cli("analyze", att_folder("wave_gemm")).assert_ok().stdout
    assert "issue 18.4%, stall 61.5%, idle 20.1%" in text
    assert "memory 24.1% (lgkmcnt 7.4%, vmcnt 16.7%), barrier 23.6%" in text


@pytest.mark.parametrize("key", ["stall", "latency", "hits"])
def test_show_lists_the_first_of_an_order(rpl_cli, att_folder, key):
    shown = rpl_cli("att", "show", att_folder("wave_gemm"), "--json").assert_ok().json()["instructions"]
    expected = sorted((row for row in shown if row["hits"]), key=lambda row: (-row[key], row["line"]))[:5]
    words = ("att", "show", att_folder("wave_gemm"), "--top", "5", "--sort", key)
    assert rpl_cli(*words, "--json").assert_ok().json()["instructions"] == expected
    table = rpl_cli(*words).assert_ok().stdout
    assert expected[0]["isa"][:20] in table
    assert "no traced wave executed" not in table
    rpl_cli(*words, "--source").assert_exit(64)


@pytest.mark.data
def test_by_cycles_the_start_up_of_waves_is_left_out(rpl_cli, att_folder):
    """The first instruction of the kernel has more cycles than any but two: all of them before it."""
    shown = rpl_cli("att", "show", att_folder("gfx1100"), "--top", "3", "--json").assert_ok().json()
    assert [row["isa"] for row in shown["instructions"]] == [
        *("s_waitcnt vmcnt(1)", "s_waitcnt lgkmcnt(0)", "s_endpgm")
    ]
    everything = rpl_cli("att", "show", att_folder("gfx1100"), "--json").assert_ok().json()["instructions"]
    cycles = sorted((row["latency"] + row["idle"], row["line"]) for row in everything)
    assert cycles[-3][1] == 1


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "said", "own"), [("gfx1100", "gfx11", "gfx1100"), ("gfx1200", "gfx12", "gfx1201")]
)
def test_a_trace_of_another_architecture_is_refused(rpl_cli, att_folder, name, said, own):
    refused = rpl_cli("analyze", "--device", "gfx942", att_folder(name)).assert_exit(65)
    assert f"of a {said} GPU, but --device asks for gfx942" in refused.stderr
    rpl_cli("analyze", "--device", own, att_folder(name)).assert_ok()


@pytest.mark.data
def test_the_table_of_agents_beside_raw_traces_names_their_gpu(rpl_cli, att_folder, tmp_path):
    # the decoder's tables say gfx9 only, which an MI300X is, too
    decoded = att_folder("wave_gemm")
    for place in (decoded, next(decoded.parent.glob("*/*_shader_engine_1_3.att"))):
        refused = rpl_cli("analyze", "--device", "gfx942", place).assert_exit(65)
        assert "of a gfx950 GPU, but --device asks for gfx942" in refused.stderr
    rpl_cli("analyze", "--device", "gfx950", decoded.parent, "-o", tmp_path / "run", "--keep").assert_ok()
    again = rpl_cli("analyze", "--json", tmp_path / "run").assert_ok().json()
    assert [trace["architecture"] for trace in again["untimed_thread_traces"]] == ["gfx950"]


def test_traces_that_name_no_kernel_are_not_called_none(rpl_cli, make_folder, tmp_path):
    for folder, label in (("a", ()), ("b", (("; _Z4gemmPf", 0, 0, 0, 0, 0, ""),))):
        trace = make_folder(f"{folder}/ui_output_agent_7_dispatch_4")
        trace.code(*label, ("v_nop", 0, 1, 4, 0, 0, "")).wave([[0, 6, 0, 4, len(label)]], 0, 4)
    refused = rpl_cli("att", "show", tmp_path).assert_exit(64)
    assert "2 kernels match: gemm; unknown kernel." in refused.stderr
    shown = rpl_cli("att", "show", tmp_path, "--kernel", "gemm").assert_ok().stdout
    assert "\n\nkernel      gemm  [" in shown
