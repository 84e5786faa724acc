"""Variables of modules and pointers to code: what captures hold of them, and what replays make of it."""

from __future__ import annotations

import json
import shutil

import pytest

pytestmark = [pytest.mark.clang, pytest.mark.timeout(900)]

TICK, FUNCTIONS, VIRTUAL = "_Z4tickPKj", "_Z14call_functionsPK5TablePj", "_Z12call_virtualPK5TablePj"


@pytest.fixture
def module_capture(
    isolated, hsa_runtime, hsa_program, module_pointers, monkeypatch, native_build, emulator, tmp_path_factory
):
    """``module_capture(TICK)``: of that kernel of module_pointers.hip, a copy for the test."""
    del emulator  # says what is missing
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))

    def capture(kernel, folder, *options):
        kept = tmp_path_factory.getbasetemp() / "-".join(["module", kernel, *options])
        if not kept.exists():
            words = (hsa_runtime, hsa_program("module_scenarios"), kernel, module_pointers(0))
            ran = isolated(*words, kernel=kernel[3:].strip("0123456789")[:4], executor="emu", options=options)
            assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
            shutil.copytree(ran.capture.folder, kept)
        return shutil.copytree(kept, folder)

    return capture


def test_a_kernel_whose_only_result_is_a_variable_is_not_reproduced_by_any_other(
    module_capture, module_pointers, replay, rpl_cli, tmp_path
):
    """On real ROCr and by the emulator: the same code, code that counts otherwise, and in `compare`."""
    folder = module_capture(TICK, tmp_path / "capture")
    for code, expected in ((0, (0, True)), (1, (1, False))):
        words = ["--hsaco", str(module_pointers(code))]
        by_gpu = replay(folder, *words, executor="emu")
        by_emulator = rpl_cli("replay", "full-vm", str(folder), "--device", "gfx942-emu", "--json", *words)
        for ran in (by_gpu, by_emulator):
            document = json.loads(ran.stdout)
            assert (ran.exit_code, document["reproduced"]) == expected, ran.stderr
            assert expected[1] or "captured launch left: ticks" in document["reproduced_reason"]
    ran = rpl_cli(
        "replay", "compare", str(folder), str(module_pointers(0)), str(module_pointers(1)), "--json"
    )
    assert (ran.exit_code, ran.json()["verdict"]) == (1, "different"), ran.stderr
    assert "variable ticks" in ran.json()["reason"]


def test_a_damaged_table_of_constants_is_not_blamed_on_the_replay(module_capture, replay, tmp_path):
    folder = module_capture(TICK, tmp_path / "capture")
    told = json.loads((folder / "capture.json").read_text())["module_variables"]
    path = folder / next(one["file"] for one in told if one["name"] == "ticks")
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
    ran = replay(folder, executor="emu")
    assert (ran.exit_code, ran.kind) == (65, "bad_capture"), ran.stderr
    assert "does not match its hash" in ran.stderr


def test_a_shrunk_capture_keeps_what_is_known_of_variables(module_capture, rpl_cli, tmp_path):
    folder, small = module_capture(TICK, tmp_path / "capture"), tmp_path / "small"
    ran = rpl_cli("capture", "shrink", str(folder), "-o", str(small))
    assert ran.exit_code == 0, ran.stderr
    assert rpl_cli("capture", "verify", str(small)).exit_code == 0
    words = ("replay", "full-vm", str(small), "--device", "gfx942-emu", "--json")
    assert rpl_cli(*words).json()["reproduced"] is True
    for path in (small / "module_variables").glob("*.post.xxh3"):
        path.unlink()
    ran = rpl_cli(*words)
    assert (ran.exit_code, "post.xxh3 is absent" in ran.stderr) == (65, True), ran.stderr


@pytest.mark.parametrize("kernel", [FUNCTIONS, VIRTUAL])
@pytest.mark.parametrize("options", [(), ("--no-low-addresses",)])
def test_pointers_to_code_in_memory_hold_where_the_runtime_allows_it(
    module_capture, module_pointers, replay, rpl_cli, tmp_path, kernel, options
):
    """Function pointers and a table of virtual functions, which another launch wrote."""
    folder = module_capture(kernel, tmp_path / "capture", *options)
    ran = replay(folder, "--iterations", "2", executor="emu")
    assert (ran.exit_code, ran.document["reproduced"]) == (0, True), ran.stderr
    words = ("replay", "full-vm", str(folder), "--device", "gfx942-emu", "--json")
    assert rpl_cli(*words).json()["reproduced"] is True
    other = ("--hsaco", str(module_pointers(1)))
    refused = (replay(folder, *other, executor="emu"), rpl_cli(*words, *other))
    for one in refused:
        error = json.loads(one.stdout)["error"]
        assert (one.exit_code, error["kind"]) == (3, "layout_clash"), one.stderr
        assert ("_Z5twicej" in error["fact"]) is True
        assert "other code has its functions elsewhere" in error["fact"]


def test_where_the_code_can_not_lie_pointers_to_it_are_refused_by_name(module_capture, replay, tmp_path):
    """The runtime gives other addresses than are asked for."""
    folder = module_capture(FUNCTIONS, tmp_path / "capture")
    ran = replay(folder, executor="emu", faults="reserve=relocate")
    assert (ran.exit_code, ran.kind) == (3, "layout_clash"), ran.stderr
    error = ran.document["error"]["fact"]
    assert "the function _Z5twicej, the function _Z6thricej, the table _ZTV6Square" in error
    assert (ran.document["timing"]["raw"], ran.document["reservations"]) == ([], [])


def test_a_kernel_that_calls_nothing_may_have_such_pointers_beside_it(module_capture, replay, tmp_path):
    folder = module_capture(TICK, tmp_path / "capture")
    ran = replay(folder, executor="emu")
    assert (ran.exit_code, ran.document["reproduced"]) == (0, True), ran.stderr
