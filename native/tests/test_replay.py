"""Captured launches run again over the software KFD, with the real ROCr, leave what they left."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct

import pytest

#: The first of them builds the native part.
pytestmark = [pytest.mark.clang, pytest.mark.timeout(900)]
#: Numbers of each array in programs/capture_scenarios.cpp.
_COUNT = 1000


@pytest.fixture
def in_place(capture_scenario):
    """The second of three launches that add 5."""
    ran = capture_scenario("in_place", kernel="^add_in", dispatch=1)
    assert ran.exit_code == 0, ran.stderr
    return ran.capture


def _region_with(capture, value):
    """The captured region whose first word that is."""
    for region in json.loads((capture.folder / "memory_regions.json").read_text())["regions"]:
        with (capture.folder / "memory" / f"region_{region['base']:x}.bin").open("rb") as stream:
            if stream.read(4) == value.to_bytes(4, "little"):
                return region
    raise AssertionError(value)


def _as_the_first_rocm_perf_lab_wrote_it(capture, folder):
    """The same capture without what only rpl's tool tells."""
    shutil.copytree(capture.folder, folder, ignore=shutil.ignore_patterns("*.xxh3", "memory_after"))
    for name in ("capture.json", "rpl_capture_complete"):
        (folder / name).unlink()
    return folder


def test_a_launch_leaves_what_it_left_each_time(in_place, replay):
    ran = replay(in_place, "--iterations", "3", "--warm-ups", "1")
    assert (ran.exit_code, ran.document["reproduced"]) == (0, True), ran.stderr
    assert [len(ran.document["timing"][name]) for name in ("raw", "warm_up_raw")] == [3, 1]
    assert ran.document["timing"]["origin"] == "synthetic"
    assert all(one["exact"] for one in ran.document["reservations"])


def test_the_text_says_what_ran_how_long_and_what_came_out(in_place, replay):
    ran = replay(in_place, "--iterations", "2", form=())
    assert ran.exit_code == 0, ran.stderr
    lines = dict(line.split("  ", 1) for line in ran.stdout.splitlines())
    assert {name: value.strip() for name, value in lines.items() if "time" not in name} == {
        "kernel": "add_in_place",
        "on": "AMD Instinct MI300X (software KFD)",
        "iterations": "2, after 0 warm-ups",
        "memory recopy": "yes",
        "reproduced": "yes",
    }
    assert re.fullmatch(r"[\d.]+ us \(synthetic\)", lines["average GPU time"].strip())
    assert re.fullmatch(r"[\d.]+ s", lines["total wall time"].strip())


def test_without_restoring_every_launch_goes_on_from_the_last(in_place, replay):
    ran = replay(in_place, "--iterations", "3", "--no-recopy")
    assert (ran.exit_code, ran.document["execution"]["mode"]) == (0, "stateful"), ran.stderr
    assert (ran.document["reproduced"], ran.document["reproduced_reason"]) == (
        None,
        "the memory was not restored between launches",
    )


@pytest.mark.parametrize(("recopy", "added"), [(True, 5), (False, 20)])
def test_memory_is_given_back_as_the_last_launch_left_it(in_place, replayed_by_api, recopy, added):
    """Accumulating as predicted: three launches and a warm-up add 5 each; and so does poison."""
    from rpl_vmreplay.interfaces import MemoryEdit, MemoryRange

    base = _region_with(in_place, 6)["base"]
    edit = MemoryEdit(base + 8, (1000).to_bytes(4, "little"))
    result = replayed_by_api(
        in_place, iterations=3, warm_ups=1, recopy=recopy, edits=(edit,), keep=(MemoryRange(base, 16),)
    )
    (kept,) = result.kept
    words = [int.from_bytes(kept[at : at + 4], "little") for at in range(0, 16, 4)]
    assert words == [6 + added, 7 + added, 1000 + added, 9 + added]
    assert result.reproduced is None


def test_only_what_launches_change_is_restored_where_the_end_proves_it(in_place, replay):
    ran = replay(in_place, "--iterations", "4")
    assert (ran.exit_code, ran.document["reproduced"]) == (0, True), ran.stderr
    execution = ran.document["execution"]
    assert 0 < execution["restored_bytes"] < sum(one["size"] for one in ran.document["reservations"])
    assert (execution["cache_mode"], execution["flushed_bytes"]) == ("warm", None)


def test_everything_is_restored_again_where_launches_change_different_memory(in_place, replay, monkeypatch):
    sum_of_all = _region_with(in_place, 40 + _COUNT * (_COUNT + 1) // 2)
    monkeypatch.setenv("ALSO_CHANGED", hex(sum_of_all["base"]))
    ran = replay(in_place, "--iterations", "4")
    assert (ran.exit_code, ran.document["reproduced"]) == (0, True), ran.stderr
    assert ran.document["execution"]["restored_bytes"] is None
    assert len(ran.document["timing"]["raw"]) == 4
    (note,) = (note for note in ran.document["notes"] if "different memory" in note)
    assert "second trial" in note


@pytest.mark.long
def test_caches_are_emptied_when_that_is_asked_for(in_place, replay):
    ran = replay(in_place, "--cold-caches")
    assert (ran.exit_code, ran.document["reproduced"]) == (0, True), ran.stderr
    execution = ran.document["execution"]
    assert execution["cache_mode"] == "cold"
    assert execution["flushed_bytes"] > 256 << 20  # twice the caches of an MI300X


def test_two_kernels_take_turns_on_one_capture(in_place, replayed_by_api, compiled_for, emulator):
    """Each from restored memory; what each leaves at the end is its own."""
    from rpl_vmreplay.interfaces import MemoryRange

    del emulator
    base = _region_with(in_place, 6)["base"]
    wrong = compiled_for("gfx942", change=("values[ID] += amount", "values[ID] -= amount"))
    result = replayed_by_api(
        in_place, "emu", iterations=3, against=wrong, against_first=(True, False, True), hashes=False,
        keep=(MemoryRange(base, 8),),
    )  # fmt: skip
    assert result.failure is None, result.failure
    assert (len(result.times_ns), len(result.against.times_ns)) == (3, 3)
    assert [struct.unpack("<II", one) for one in (*result.kept, *result.against.kept)] == [(11, 12), (1, 2)]
    shadowed = replayed_by_api(in_place, iterations=1, against=wrong, against_first=(True,), hashes=False)
    assert shadowed.failure.kind.value == "undecidable"


def test_memory_of_every_kind_dynamic_lds_and_a_variable(capture_scenario, replay):
    ran = capture_scenario("every_kind", kernel="follow_list", dispatch=1, options=("--compress",))
    assert ran.exit_code == 0, ran.stderr
    ran = replay(ran.capture, "--iterations", "2")
    assert (ran.exit_code, ran.document["reproduced"]) == (0, True), ran.stderr + str(ran.document)


def test_two_gpus(capture_scenario, replay):
    captured = capture_scenario("two_gpus", kernel="add_arrays", gpus=2)
    ran = replay(captured.capture, gpus=2)
    assert (ran.exit_code, ran.document["reproduced"]) == (0, True), ran.stderr
    assert replay(captured.capture, gpus=1).document["reproduced"] is True


@pytest.mark.parametrize(
    ("scenario", "kernel"), [("drain", "accumulate"), ("between_processes", "add_in_place")]
)
def test_captures_of_other_scenarios(capture_scenario, replay, scenario, kernel):
    captured = capture_scenario(scenario, kernel=kernel)
    ran = replay(captured.capture)
    assert (ran.exit_code, ran.document["reproduced"]) == (0, True), ran.stderr


def test_what_the_program_wrote_to_meanwhile_is_never_called_reproduced(in_place, replay, seal_again):
    told = {**in_place.extras, "host_writers": True}
    (in_place.folder / "capture.json").write_text(json.dumps(told))
    seal_again(in_place.folder)
    ran = replay(in_place)
    assert (ran.exit_code, ran.document["reproduced"]) == (0, None), ran.stderr
    assert ran.document["reproduced_reason"] == "the program wrote to memory while it was captured"


def test_another_outcome_is_told(in_place, replay, change_the_hash):
    change_the_hash(in_place)
    ran = replay(in_place)
    assert (ran.exit_code, ran.document["reproduced"], ran.kind) == (1, False, None), ran.stderr
    assert ran.document["differing"]


@pytest.mark.parametrize(
    ("faults", "code", "verdict", "error"),
    [
        ("", 0, "exact", None),
        ("reserve=refuse", 1, "failed", "reserve_failed"),
        ("reserve=relocate", 2, "relocated", None),
    ],
)
def test_reserve_check_says_what_the_runtime_gives(in_place, replay, faults, code, verdict, error):
    ran = replay(in_place, command="reserve-check", faults=faults)
    assert (ran.exit_code, ran.document["verdict"], ran.kind) == (code, verdict, error), ran.stderr
    assert bool(ran.document["reservations"]) is True


def test_the_process_starts_again_when_it_lies_in_the_way_itself(in_place, replay, tmp_path):
    """Half of where the kernel puts libraries is asked for: five times it would be free once in 32 trials."""
    folder = _as_the_first_rocm_perf_lab_wrote_it(in_place, tmp_path / "large")
    listed = json.loads((folder / "memory_regions.json").read_text())
    listed["regions"] = [{**listed["regions"][0], "base": 0x7F0000000000, "size": 1 << 39}]
    (folder / "memory_regions.json").write_text(json.dumps(listed))
    for _ in range(5):
        ran = replay(folder, command="reserve-check")
        assert (ran.exit_code, ran.document["verdict"]) == (0, "exact"), ran.stderr


def test_a_process_that_always_lies_in_the_way_says_so(in_place, replay, tmp_path):
    """Wherever programs are loaded, with and without randomisation, is asked for."""
    folder = _as_the_first_rocm_perf_lab_wrote_it(in_place, tmp_path / "everywhere")
    listed = json.loads((folder / "memory_regions.json").read_text())
    base, size = 0x550000000000, 2 << 40
    listed["regions"].append({**listed["regions"][0], "base": base, "size": size})
    (folder / "memory_regions.json").write_text(json.dumps(listed))
    content = folder / "memory" / f"region_{base:x}.bin"
    content.touch()
    os.truncate(content, size)
    ran = replay(folder)
    assert (ran.exit_code, ran.kind) == (3, "layout_clash"), ran.stderr
    assert ran.document["error"]["cause"].startswith("5555")  # the line of its own map


@pytest.mark.parametrize(
    ("faults", "code", "kind"),
    [
        ("reserve=refuse", 1, "reserve_failed"),
        ("reserve=relocate", 3, "relocated"),
        ("map=6", 1, "map_failed"),
        ("copy=1", 1, "copy_failed"),
        ("version=14", 6, "no_virtual_memory"),
        ("slow=60000:add_in_place", 124, "time_limit"),
    ],
)
def test_what_fails_is_told_by_kind(in_place, replay, faults, code, kind):
    ran = replay(in_place, "--kernel-timeout", "0.2", faults=faults)
    assert (ran.exit_code, ran.kind) == (code, kind), ran.stderr
    assert ran.document["reproduced"] is None
    assert "Next:" in ran.stderr or "Likely cause:" in ran.stderr


def test_one_deadline_holds_for_the_whole_replay(in_place, replay):
    """A completion is lost while the runtime prepares: it waits for ever, inside of its own functions."""
    ran = replay(in_place, "--kernel-timeout", "0.5", faults="lost=1")
    assert (ran.exit_code, ran.kind) == (124, "time_limit"), ran.stderr
    assert "raise --kernel-timeout" in ran.stderr
    assert ran.document["reproduced"] is None


def test_memory_that_is_not_in_the_capture_is_a_fault_of_the_gpu(in_place, replay, tmp_path):
    """And no hang: the region that the kernel writes is left out."""
    folder = _as_the_first_rocm_perf_lab_wrote_it(in_place, tmp_path / "holes")
    values = _region_with(in_place, 6)["base"]
    listed = json.loads((folder / "memory_regions.json").read_text())
    listed["regions"] = [one for one in listed["regions"] if one["base"] != values]
    (folder / "memory_regions.json").write_text(json.dumps(listed))
    ran = replay(folder)
    assert (ran.exit_code, ran.kind) == (4, "gpu_fault"), ran.stderr
    assert ran.document["error"]["address"] // 4096 == values // 4096


def test_captures_of_the_public_tools(in_place, replay, tmp_path):
    first = _as_the_first_rocm_perf_lab_wrote_it(in_place, tmp_path / "first")
    kerncap = shutil.copytree(first, tmp_path / "kerncap")
    (kerncap / "metadata.json").write_text("{}")
    (kerncap / "capture_complete").write_text("")
    dispatch = json.loads((kerncap / "dispatch.json").read_text())
    dispatch["mangled_name"] = dispatch["mangled_name"].removesuffix(".kd") + " [clone .kd]"
    (kerncap / "dispatch.json").write_text(json.dumps(dispatch))
    for folder in (first, kerncap):
        ran = replay(folder)
        assert (ran.exit_code, ran.document["reproduced"]) == (0, None), ran.stderr
        assert ran.document["capture"]["layout"] == ("kerncap" if folder is kerncap else "rocm-perf-lab")


def test_captures_that_are_not_whole_are_refused(in_place, replay):
    region = in_place.folder / "memory" / f"region_{_region_with(in_place, 6)['base']:x}.bin"
    content = bytearray(region.read_bytes())
    region.write_bytes(content[:-1])
    assert "are said to be in it" in replay(in_place).document["error"]["fact"]
    content[0] ^= 1
    region.write_bytes(content)
    ran = replay(in_place)
    assert (ran.exit_code, ran.kind) == (65, "bad_capture")
    assert "does not match its hash" in ran.document["error"]["fact"]
    (in_place.folder / "dispatch.json").unlink()
    assert replay(in_place).exit_code == 69


def test_code_for_another_gpu_is_refused_before_anything_runs(in_place, replay, compiled_for):
    ran = replay(in_place, "--hsaco", str(compiled_for("gfx90a")), executor="emu")
    assert (ran.exit_code, ran.kind) == (5, "isa_mismatch"), ran.stderr
    assert (ran.document["timing"]["raw"], ran.document["reservations"]) == ([], [])


@pytest.mark.parametrize(
    ("layout", "said", "code", "exit_code"),
    [
        ("rocm-perf-lab", "gfx90a", "gfx942", 5),
        ("rocm-perf-lab", "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack+", "gfx942", 5),
        ("rocm-perf-lab", "amdgcn-amd-amdhsa--gfx942", "gfx90a", 5),
        ("rocm-perf-lab", "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", "gfx942", 0),
        ("kerncap", "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", "gfx942", 5),
        ("rpl", "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", "gfx942", 65),
        ("rpl", "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", "gfx90a", 65),
    ],
)
def test_file_code_and_gpu_agree_on_the_instruction_set_in_each_replayer(
    in_place, replay, rpl_cli, tmp_path, compiled_for, seal_again, monkeypatch, native_build, emulator,
    layout, said, code, exit_code,
):  # fmt: skip
    """Files that contradict each other are no capture; the public tools' own have nothing to contradict."""
    del emulator
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))
    folder = in_place.folder
    if layout != "rpl":
        folder = _as_the_first_rocm_perf_lab_wrote_it(in_place, tmp_path / layout)
    if layout == "kerncap":
        (folder / "metadata.json").write_text("{}")
        (folder / "capture_complete").write_text("")
    dispatch = json.loads((folder / "dispatch.json").read_text())
    (folder / "dispatch.json").write_text(json.dumps({**dispatch, "isa_name": said}))
    if code != "gfx942":
        shutil.copy(compiled_for(code), folder / "kernel.hsaco")
    if layout == "rpl":
        seal_again(folder)
    by_gpu = replay(folder, executor="emu")
    by_emulator = rpl_cli("replay", "full-vm", str(folder), "--device", "gfx942-emu", "--json")
    assert (by_gpu.exit_code, by_emulator.exit_code) == (exit_code, exit_code), by_gpu.stderr
    if exit_code == 5:
        assert (by_gpu.kind, by_emulator.json()["error"]["kind"]) == ("isa_mismatch",) * 2
        assert by_gpu.document["reservations"] == []


def test_other_code_leaves_the_same_or_something_else(in_place, replay, compiled_for, emulator):
    """With the emulator for the code: the captured one, an unoptimized one, and one that subtracts."""
    del emulator
    assert replay(in_place, executor="emu").document["reproduced"] is True
    slower = replay(in_place, "--hsaco", str(compiled_for("gfx942", "-O1", "-fno-inline")), executor="emu")
    assert (slower.exit_code, slower.document["reproduced"]) == (0, True), slower.stderr
    assert slower.document["kernel"]["captured_code"] is False
    wrong = compiled_for("gfx942", change=("values[ID] += amount", "values[ID] -= amount"))
    ran = replay(in_place, "--hsaco", str(wrong), executor="emu")
    assert (ran.exit_code, ran.document["reproduced"]) == (1, False), ran.stderr


def test_other_code_is_not_judged_by_functions_of_the_host(in_place, replay, kernels):
    ran = replay(in_place, "--hsaco", str(kernels))
    assert (ran.exit_code, ran.kind) == (75, "undecidable"), ran.stderr


def test_code_with_another_layout_of_arguments_is_refused(in_place, replay, other_arguments):
    ran = replay(in_place, "--hsaco", str(other_arguments))
    assert (ran.exit_code, ran.kind) == (65, "bad_capture"), ran.stderr
    assert re.search(r"takes other arguments .* abi-diff", ran.stderr)
