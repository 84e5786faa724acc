"""Damaged and hostile folders: a clear message, no crash, no file outside of the folder, bounded memory."""

from __future__ import annotations

import gzip
import json
import os

import pytest

from rpl_att.reading import TraceFolder
from rpl_core.errors import BadDataError
from rpl_gfx950.products import GFX950

CODE = (("; k", 0, 0, 0, 0, 0), ("v_nop", 0, 1, 4, 0, 6), ("s_endpgm", 4, 1, 8, 0, 0))
WAVE = [[106, 6, 0, 4, 1], [110, 11, 0, 8, 2]]


@pytest.fixture
def sound(trace_folder):
    return trace_folder.code(*CODE).wave(WAVE, 100, 118)


def test_the_sound_folder_of_these_tests_is_available(sound):
    block = sound.block()
    assert (block.status, block.waves, block.cycles.total) == ("available", 1, 18)
    assert all(check.holds is not False for check in block.checks)


@pytest.mark.parametrize(
    "name", ["code.json", "filenames.json", "occupancy.json", "wstates1.json", "realtime.json"]
)
@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", "3", '"text"', "\udcff{}", '{"code": 3, "0": 5}', "NaN"]
)
def test_a_damaged_table_costs_what_it_held_and_is_named(sound, name, content):
    (sound.path / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    block = sound.block()
    assert block.status in ("available", "partial", "empty", "unreadable")
    if block.status != "available":
        assert block.reason


@pytest.mark.parametrize("cut", [1, 40, 80, 120, 160, 200])
def test_a_truncated_wave_is_left_out_and_named(sound, cut):
    sound.wave(WAVE, 100, 118, simd=1)
    victim = sound.path / "se0_sm1_sl0_wv0.json"
    victim.write_bytes(victim.read_bytes()[:cut])
    block = sound.block()
    assert (block.status, block.waves, block.waves_missing) == ("partial", 1, 1)
    assert victim.name in block.warnings[0]
    assert block.cycles.total == 18  # nothing of the damaged wave


@pytest.mark.parametrize(
    "instructions",
    [
        [[106, 6, 0, 4]],
        [[106, 6, 0, 4, 1], [110, 11, 0, 8]],
        [[106, 6, 0, 4, 1, 9]],
        [[106, 6, 0, 4, "1"]],
        [[106, 6, 0, 4.5, 1]],
        [[106, 6, 0, 4, None]],
        [[106, 6, 0, -4, 1]],
        [[106, 6, -1, 4, 1]],
        [[106, 999, 0, 4, 1]],
        [[106, -1, 0, 4, 1]],
        [[10**30, 6, 0, 4, 1]],
        [[[106], 6, 0, 4, 1]],
        [[]],
        [[[[[]]]]],
        [1, 2, 3],
        "instructions",
        {"a": 1},
        3,
    ],
)
def test_impossible_instructions_spoil_only_their_wave(sound, instructions):
    sound.wave(instructions, 100, 118, simd=1)
    block = sound.block()
    assert (block.status, block.waves, block.waves_missing) == ("partial", 1, 1)
    assert block.cycles.total == 18


@pytest.mark.parametrize("timeline", [[[2, -18]], [[5, 18]], [[-1, 18]]])
def test_nothing_of_a_wave_counts_whose_states_are_impossible(sound, timeline):
    """States stand behind the instructions, which are sound here and must not have counted by then."""
    sound.wave(WAVE, 100, 118, simd=1, timeline=timeline)
    block = sound.block()
    assert (block.status, block.waves, block.waves_missing) == ("partial", 1, 1)
    assert "an impossible state" in block.warnings[0]
    assert (block.cycles.total, block.instructions) == (18, 2)


def test_every_wave_without_a_file_is_missing_once(sound):
    sound.wave(WAVE, 100, 118, simd=1).wave(WAVE, 118, 136, simd=1)
    for name in ("se0_sm1_sl0_wv0.json", "se0_sm1_sl0_wv1.json"):
        (sound.path / name).unlink()
    block = sound.block()
    assert (block.waves, block.waves_missing) == (1, 2)


def test_an_instruction_of_an_unknown_line_counts_in_the_totals_only(trace_folder):
    block = trace_folder.code(*CODE).wave([*WAVE, [118, 6, 0, 4, 77]], 100, 122).block()
    assert (block.instructions, block.unresolved_instructions) == (3, 1)
    assert block.cycles.total == 22
    assert block.status == "partial"
    assert sum(entry.hits for entry in block.instruction_mix.values()) == 2


@pytest.mark.parametrize("name", ["../secret.json", "/etc/passwd", "..", "a/b.json", "a\\b.json", "x\0y", ""])
def test_a_wave_name_that_leads_out_of_the_folder_is_refused(sound, name):
    (sound.path.parent / "secret.json").write_text("{}")
    sound.index(wave_filenames={"0": {"0": {"0": {"0": [name, 0, 1]}}}})
    block = sound.block()
    assert block.waves == 0
    assert any("names a file outside of itself" in warning for warning in block.warnings)


def test_links_are_not_followed(sound, tmp_path):
    outside = tmp_path / "outside.json"
    outside.write_bytes((sound.path / "code.json").read_bytes())
    (sound.path / "code.json").unlink()
    (sound.path / "code.json").symlink_to(outside)
    assert TraceFolder.at(sound.path).table("code.json") is None


def test_a_fifo_is_no_file(sound):
    (sound.path / "code.json").unlink()
    os.mkfifo(sound.path / "code.json")
    assert TraceFolder.at(sound.path).table("code.json") is None


def test_deeply_nested_json_is_refused(sound):
    sound.file("code.json", "[" * 200_000 + "]" * 200_000)
    with pytest.raises(BadDataError, match=r"nested too deeply|no object|not valid"):
        TraceFolder.at(sound.path).table("code.json")


def test_a_decompression_bomb_is_refused(sound):
    (sound.path / "code.json").unlink()
    with gzip.open(sound.path / "code.json.gz", "wb") as stream:
        for _ in range(80):
            stream.write(b" " * (1 << 20))
    with pytest.raises(BadDataError, match="unpacks to more than"):
        TraceFolder.at(sound.path).table("code.json")


def test_a_damaged_gzip_file_is_named(sound):
    data = gzip.compress((sound.path / "code.json").read_bytes())
    (sound.path / "code.json").unlink()
    (sound.path / "code.json.gz").write_bytes(data[: len(data) // 2])
    with pytest.raises(BadDataError, match="can't be unpacked"):
        TraceFolder.at(sound.path).table("code.json")


def test_a_gzipped_folder_reads_like_the_plain_one(sound):
    plain = sound.block()
    for file in list(sound.path.iterdir()):
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    assert sound.block() == plain


def test_too_many_waves_are_refused(sound, monkeypatch):
    monkeypatch.setattr("rpl_att.reading.wave_files.MAX_WAVES", 3)
    for count, refused in ((2, False), (3, False), (4, True)):
        # Over engines, SIMDs and slots together.
        waves = {str(n): {"0": {"0": {"0": [f"{n}.json", 0, 1]}}} for n in range(count)}
        sound.index(wave_filenames=waves)
        told = any("more than 3 waves" in warning for warning in sound.block().warnings)
        assert told == refused, count


def test_a_gigantic_skeleton_is_refused(sound, monkeypatch):
    monkeypatch.setattr("rpl_att.reading.wave_files.MAX_SKELETON_BYTES", 5000)
    path = sound.path / "se0_sm0_sl0_wv0.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({"pad": "x" * 10_000, **document}))
    assert "beside its arrays" in " ".join(sound.block().warnings)


@pytest.mark.parametrize("tree", [{"a": {"b": 3}}, {"a": ["x"]}, [1], "x", {"a": None}])
def test_a_malformed_tree_of_sources_is_refused(sound, tree):
    from rpl_att.reading import source_names

    sound.file("snapshots.json", {"/": tree} if not isinstance(tree, list) else tree)
    if tree == "x":
        assert source_names(TraceFolder.at(sound.path)) == {"/": "x"}
        return
    with pytest.raises(BadDataError, match="is no tree"):
        source_names(TraceFolder.at(sound.path))


def test_an_endless_tree_of_sources_is_refused(sound):
    from rpl_att.reading import source_names

    sound.file("snapshots.json", '{"a":' * 300 + '"x"' + "}" * 300)
    with pytest.raises(BadDataError, match="at most 64 folders"):
        source_names(TraceFolder.at(sound.path))


def test_a_source_copy_outside_of_the_folder_is_not_read(sound, tmp_path):
    from rpl_att.reading import read_source

    (sound.path.parent / "secret.cpp").write_text("secret")
    with pytest.raises(BadDataError, match="outside of itself"):
        read_source(TraceFolder.at(sound.path), {"/a.cpp": "../secret.cpp"}, "/a.cpp")


def test_an_empty_folder_is_no_trace(tmp_path, rpl_cli):
    folder = tmp_path / "ui_output_agent_1_dispatch_1"
    folder.mkdir()
    rpl_cli("att", "show", folder).assert_exit(65)
    rpl_cli("analyze", folder).assert_exit(65)


@pytest.mark.parametrize("code", [None, []])
def test_an_empty_trace_fails_loudly_in_every_command(trace_folder, rpl_cli, code):
    trace_folder.file("code.json", {"code": code, "header": "x", "version": "3.0.0"}).index()
    outcome = rpl_cli("att", "show", trace_folder.path).assert_exit(65)
    assert "no instruction was traced" in outcome.stderr
    document = rpl_cli("analyze", trace_folder.path, "--json").assert_ok().json()
    assert document["att"]["status"] == "empty"
    assert document["att"]["stall_fraction"] is None
    assert document["att"]["instruction_mix"] == {}
    assert "att.empty" in [d["code"] for d in document["diagnostics"]]


def test_terminal_escapes_in_names_do_not_reach_the_terminal(trace_folder, rpl_cli):
    rows = (("; k\x1b[2J", 0, 0, 0, 0, 0, "evil\x1b]0;x\x07"), ("v_nop \x1b[31m", 0, 1, 4, 0, 6))
    trace_folder.code(*rows).wave([[106, 6, 0, 4, 1]], 100, 110)
    for command in (("att", "show"), ("analyze",)):
        outcome = rpl_cli(*command, trace_folder.path).assert_ok()
        assert "\x1b" not in outcome.stdout + outcome.stderr


def test_blocks_give_the_same_result_as_the_whole(sound, att_folder, monkeypatch, att_of):
    """Block borders anywhere in the file change nothing."""
    from rpl_att.analysis.att_block import att_block
    from rpl_att.decoded_trace import read_decoded_trace

    monkeypatch.setattr("rpl_att.reading.wave_files.BLOCK_BYTES", 613)
    gfx950 = GFX950.architecture
    assert att_block(read_decoded_trace(att_folder("wave_gemm")), gfx950) == att_of("wave_gemm")


def test_a_reader_keeps_its_contract_with_damaged_tables(trace_folder, tmp_path):
    from rpl_att.reader import ThreadTraceReader
    from rpl_testkit.contracts import assert_reader

    trace_folder.code(*CODE).wave(WAVE, 100, 118)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert_reader(ThreadTraceReader(), trace_folder.path / "code.json", scratch)


@pytest.mark.parametrize(
    "events",
    [
        [[1, 2, 3]],
        [[1, 2, 3, 4, 5, "x"]],
        [[1, 2, 3, 4, 5, 6], [1, 2]],
        [None],
        ["x"],
        {"a": 1},
        [[[1]]],
        [1.5],
    ],
)
def test_impossible_occupancy_events_cost_the_occupancy_only(sound, events):
    sound.file("occupancy.json", {"0": events, "dispatches": {}})
    block = sound.block()
    assert (block.status, block.waves, block.occupancy) == ("available", 1, ())
    assert "occupancy.json" in block.warnings[0]
    assert block.unavailable["occupancy"]


def test_newer_occupancy_rows_may_be_longer(sound):
    rows = [[0, 1, 0, 0, 1, 1, 7, 7, 0, 9, 9], [40, 1, 0, 0, 0, 1, 7, 7, 0, 9, 9]]
    block = sound.file(
        "occupancy.json", {"0": rows, "dispatches": {}, "events": {"0": [{"kind": "event"}]}}
    ).block()
    assert block.occupancy[0].peak_waves == 1
    assert block.occupancy[0].last_clock == 40


def test_a_large_occupancy_file_is_streamed(sound):
    """Far above the size up to which tables are read whole, were it one of them."""
    event = ",".join(f"[{i},1,0,0,{1 - i % 2},1]" for i in range(200_000))
    sound.file("occupancy.json", f'{{"0":[{event}],"dispatches":{{}}}}')
    (whole, *_) = sound.block().occupancy
    assert (whole.peak_waves, whole.last_clock) == (1, 199_999)


def test_an_index_that_names_one_wave_for_all_is_refused_before_any_is_read(sound, monkeypatch):
    """A file of some megabytes would have one wave read 190 000 times."""
    from rpl_att.reading.wave_files import read_wave_index

    index = {"0": {"0": {"0": {str(i): ["se0_sm0_sl0_wv0.json", 0, 1] for i in range(1000)}}}}
    sound.file("filenames.json", json.dumps({"wave_filenames": index}))
    with pytest.raises(BadDataError, match="one file for several waves, 1000 times"):
        read_wave_index(TraceFolder(sound.path))
