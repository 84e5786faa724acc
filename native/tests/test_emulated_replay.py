"""Captures of real launches run again in the emulator, and other code objects are compared with them."""

from __future__ import annotations

import json
import shutil
import struct

import attrs
import pytest

from rpl_emu.replay import EmulatedReplayer
from rpl_optimize.interfaces.equivalence import EquivalenceOptions, EquivalenceRequest, EquivalenceVerdict
from rpl_vmreplay.capture.folder import open_capture
from rpl_vmreplay.compare.judge import Allowance, Verdict
from rpl_vmreplay.compare.outputs import DataType
from rpl_vmreplay.compare.pair import compare_code, subjects_of
from rpl_vmreplay.interfaces import MemoryRange, ReplayRequest

pytestmark = [pytest.mark.clang, pytest.mark.timeout(900)]

(
    OPTIMIZED, OFF_BY_ONE, DROPPED_REMAINDER, NO_BARRIER, REORDERED, OTHER_ARGUMENTS, BESIDE, STALE_READ,
    LUCKY_RACE,
) = range(1, 10)  # fmt: skip
WRONG = (OFF_BY_ONE, DROPPED_REMAINDER, NO_BARRIER, BESIDE, STALE_READ)


@pytest.fixture
def capture_of(
    isolated, hsa_runtime, hsa_program, compared, monkeypatch, native_build, emulator, tmp_path_factory
):
    """``capture_of("total")``: of that kernel of compared.hip, the same for all tests; nobody changes it."""
    del emulator  # says what is missing
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))

    def capture(kernel):
        kept = tmp_path_factory.getbasetemp() / f"capture-{kernel}"
        if kept.exists():
            return kept
        program = hsa_program("compared_scenarios")
        ran = isolated(hsa_runtime, program, kernel, compared(0), kernel=kernel)
        assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
        shutil.copytree(ran.capture.folder, kept)
        return kept

    return capture


class Unlogged(EmulatedReplayer):
    """As a GPU: nobody knows what it writes, and it rounds as it does."""

    rounds = False

    def replay(self, request):
        result = super().replay(attrs.evolve(request, access_log=False))
        return attrs.evolve(result, accesses_reason="a GPU tells none")


def test_a_captured_launch_leaves_what_it_left(capture_of, compared, rpl_cli, tmp_path):
    folder = capture_of("block_sums")
    result = EmulatedReplayer().replay(ReplayRequest(folder, access_log=True))
    assert result.failure is None
    assert (result.reproduced, result.reproduced_reason) == (True, None)
    assert result.times_ns == ()
    assert result.accesses is not None
    read, written = (
        [one.size for one in ranges] for ranges in (result.accesses.read_first, result.accesses.written)
    )
    assert sorted(read) == [4, 28, 4000]  # what is added to, the arguments, the numbers
    assert sorted(written) == [4, 16]
    ran = rpl_cli("replay", "full-vm", str(folder), "--device", "gfx942-emu", "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["reproduced"]) == (0, True), ran.stderr
    folder = shutil.copytree(folder, tmp_path / "changed")
    (folder / "kernel.hsaco").write_bytes(compared(OFF_BY_ONE).read_bytes())
    result = EmulatedReplayer().replay(ReplayRequest(folder))
    assert result.reproduced is False
    assert len(result.differing) == 1


def test_only_what_computes_the_same_is_equal(capture_of, compared, rpl_cli):
    folder = capture_of("block_sums")

    def against(version):
        ran = rpl_cli("replay", "compare", str(folder), str(compared(0)), str(compared(version)), "--json")
        return ran, json.loads(ran.stdout) if ran.stdout else None

    ran, found = against(OPTIMIZED)
    assert ran.exit_code == 0, ran.stdout + ran.stderr
    assert found["verdict"] == "equal"
    assert "for the captured input and" in found["covers"]
    assert found["replayer"] == {"name": "emulator", "origin": "modelled"}
    assert (found["poisoned_bytes"], found["read_first_bytes"]) == (16, 4)
    assert [one["type"] for one in found["outputs"]] == ["f32", "bytes"]
    assert found["controls"][0] == {"edit": "the kernel ends at once", "outcome": "noticed"}
    assert sum(one["outcome"] != "refused" for one in found["controls"][1:]) >= 8
    # All lanes of a wave store the same sum there: not wrong.
    assert len(found["survivors"]) <= 2

    ran, found = against(OFF_BY_ONE)
    assert (ran.exit_code, found["verdict"]) == (1, "different")
    # One of a thousand numbers hides below the bound of the captured sums; small integers round nothing.
    assert "with small integers" in found["reason"]
    assert found["controls"] == []
    ran, found = against(BESIDE)
    assert (ran.exit_code, found["outputs"][0]["differing"]) == (1, 0)
    assert [one["size"] for one in found["written_beside"]] == [4]
    ran, found = against(OTHER_ARGUMENTS)
    assert (ran.exit_code, found["verdict"], found["error"]["kind"]) == (65, None, "bad_capture")
    assert "another launch interface" in ran.stderr


def test_a_shrunk_capture_replays_the_same(capture_of, rpl_cli, seal_again, tmp_path):
    folder, small = capture_of("block_sums"), tmp_path / "small"
    ran = rpl_cli("capture", "shrink", str(folder), "-o", str(small), "--json")
    assert ran.exit_code == 0, ran.stderr
    told = ran.json()
    assert told["bytes"] + 4000 < told["before"]["bytes"]  # the host's copy of the numbers is not reached
    assert told["accesses"]["read_first_bytes"] == 4 + 28 + 4000
    assert told["accesses"]["reproduced"] is True
    ran = rpl_cli("capture", "verify", str(small), "--accesses", "--json")
    assert (ran.exit_code, ran.json()["accesses"]) == (0, told["accesses"]), ran.stderr
    ran = rpl_cli("replay", "full-vm", str(small), "--device", "gfx942-emu", "--json")
    assert (ran.exit_code, ran.json()["reproduced"]) == (0, True), ran.stderr
    assert rpl_cli("capture", "shrink", str(folder), "-o", str(small)).exit_code == 64

    values = max(open_capture(small).regions, key=lambda one: one.size)
    _drop_region(small / "memory_regions.json", (), values.base)
    _drop_region(small / "capture.json", ("memory",), values.base)
    seal_again(small)
    assert rpl_cli("capture", "verify", str(small)).exit_code == 0
    ran = rpl_cli("capture", "verify", str(small), "--accesses", "--json")
    assert ran.exit_code == 65
    assert "memory that the capture does not hold" in ran.json()["problems"][0]


def _drop_region(path, place, base):
    whole = data = json.loads(path.read_text())
    for key in place:
        data = data[key]
    data["regions"] = [one for one in data["regions"] if one["base"] != base]
    path.write_text(json.dumps(whole))


def test_what_the_arguments_lead_to_is_all_that_a_launch_reaches(
    isolated, hsa_runtime, hsa_program, compared, monkeypatch, native_build, emulator, rpl_cli
):
    del emulator
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))
    words = ("block_sums", compared(0))
    options = ("--regions", "referenced")
    ran = isolated(
        hsa_runtime, hsa_program("compared_scenarios"), *words, kernel="block_sums", options=options
    )
    assert ran.capture.extras["memory"]["mode"] == "referenced"
    proven = rpl_cli("capture", "verify", str(ran.capture.folder), "--accesses", "--json")
    assert (proven.exit_code, proven.json()["accesses"]["touched_bytes"]) == (0, 4 + 4000 + 16)


def test_a_race_that_never_shows_in_results_is_found(capture_of, compared, rpl_cli):
    words = [str(capture_of("block_sums")), str(compared(0)), str(compared(LUCKY_RACE))]
    ran = rpl_cli("replay", "compare", *words, "--sanitize", "--json")
    assert (ran.exit_code, ran.json()["verdict"]) == (1, "different")
    assert "lds-race at" in ran.json()["reason"]
    assert ran.json()["outputs"][0]["differing"] == 0


@pytest.mark.long
def test_with_the_sanitizer_wrong_kernels_are_different_and_right_ones_equal(capture_of, compared, tmp_path):
    capture = open_capture(capture_of("block_sums"))
    found = {
        version: compare_code(
            capture,
            EmulatedReplayer(),
            subjects_of(capture, compared(0), compared(version), tmp_path),
            sanitize=True,
        ).verdict
        for version in (OPTIMIZED, REORDERED, *WRONG, LUCKY_RACE)
    }
    assert found.pop(OPTIMIZED) is Verdict.EQUAL
    assert found.pop(REORDERED) is Verdict.ROUNDING
    assert set(found.values()) == {Verdict.DIFFERENT}, found


@pytest.mark.long
@pytest.mark.parametrize("replayer", [EmulatedReplayer, Unlogged])
def test_wrong_kernels_are_different_with_and_without_a_log(capture_of, compared, tmp_path, replayer):
    capture = open_capture(capture_of("block_sums"))
    found = {
        version: compare_code(
            capture, replayer(), subjects_of(capture, compared(0), compared(version), tmp_path)
        )
        for version in (OPTIMIZED, REORDERED, *WRONG)
    }
    assert found.pop(OPTIMIZED).verdict is Verdict.EQUAL
    reordered = found.pop(REORDERED)
    # Without the emulator nobody knows how far rounding may move a sum.
    assert reordered.verdict is (Verdict.ROUNDING if replayer is EmulatedReplayer else Verdict.DIFFERENT)
    assert reordered.outputs[0].worst < 100
    assert {one.verdict for one in found.values()} == {Verdict.DIFFERENT}


@pytest.mark.long
@pytest.mark.parametrize(
    ("executor", "version", "code", "verdict"),
    [
        ("emu", OPTIMIZED, 0, "equal"),
        ("emu", DROPPED_REMAINDER, 1, "different"),
        ("shadow", OPTIMIZED, 75, "undecided"),
    ],
)
def test_the_replayer_for_hardware_compares_where_code_runs(
    capture_of,
    compared,
    rpl_cli,
    monkeypatch,
    native_build,
    hsa_runtime,
    shadows,
    executor,
    version,
    code,
    verdict,
):
    """On real ROCr over the software KFD. Shadow functions never judge other code."""
    folder = capture_of("block_sums")
    launcher = native_build / "native" / "softkfd" / "softkfd-run"
    monkeypatch.setenv("RPL_NATIVE_FOLDER", str(native_build))
    monkeypatch.setenv("RPL_REPLAY_LAUNCHER", f"{launcher} --executor {executor} --runtime {hsa_runtime}")
    monkeypatch.setenv("SOFTKFD_SHADOWS", str(shadows) if executor == "shadow" else "")
    words = [str(folder), str(compared(0)), str(compared(version)), "--replayer", "hsa", "--json"]
    ran = rpl_cli("replay", "compare", *words, "--pairs", "4")
    found = json.loads(ran.stdout)
    assert (ran.exit_code, found["verdict"]) == (code, verdict), ran.stdout + ran.stderr
    if verdict == "equal":
        assert (found["times"]["origin"], found["times"]["problem"]) == ("synthetic", None)
        assert len(found["times"]["b"]) == 4
    else:
        assert found["times"] is None


@pytest.mark.long
def test_the_spread_of_the_baseline_is_its_tolerance(capture_of, compared, tmp_path):
    """Sums of floats by atomics: the order is free, the numbers are not."""
    capture = open_capture(capture_of("total"))

    def against(version):
        subjects = subjects_of(capture, compared(0), compared(version), tmp_path)
        return compare_code(capture, EmulatedReplayer(), subjects)

    same, wrong = against(OPTIMIZED), against(DROPPED_REMAINDER)
    assert same.verdict in (Verdict.EQUAL, Verdict.BLIND), same
    assert 0 < same.outputs[0].spread <= same.outputs[0].tolerance < 10_000
    assert wrong.verdict is Verdict.DIFFERENT


@pytest.mark.long
def test_the_optimizer_asks_the_captured_launch(capture_of, compared, tmp_path, monkeypatch):
    from rpl_core.interfaces.options import Options
    from rpl_vmreplay import optimizer_checks

    monkeypatch.setattr(optimizer_checks, "replayer_of_the_command", EmulatedReplayer)
    folder = capture_of("block_sums")

    def ask(version, plugins=None):
        plugins = Options({"capture": folder}) if plugins is None else plugins
        options = EquivalenceOptions(plugins=plugins)
        request = EquivalenceRequest(
            tmp_path, tmp_path, ("app",), options=options,
            baseline_program=compared(0), candidate_program=compared(version),
        )  # fmt: skip
        return optimizer_checks.CapturedLaunchCheck().check(request)

    equal = ask(OPTIMIZED)
    assert equal.verdict is EquivalenceVerdict.EQUAL, equal
    assert "for the captured input and" in equal.evidence
    assert ask(NO_BARRIER).verdict is EquivalenceVerdict.DIFFERENT
    assert ask(OTHER_ARGUMENTS).verdict is EquivalenceVerdict.NOT_RUN
    assert ask(OPTIMIZED, Options()).verdict is EquivalenceVerdict.NOT_RUN
    looking = Options({"capture": folder, "sanitize": True})
    assert "no race" in ask(OPTIMIZED, looking).evidence
    assert ask(LUCKY_RACE, looking).verdict is EquivalenceVerdict.DIFFERENT
    assert "same machine code" in ask(0).evidence


VALUES, RESULTS = 0x4801400000, 0x4801410000


@pytest.fixture
def tally_capture(kerncap_capture, module_state, emulator, monkeypatch, native_build):
    """A launch that leaves results, and adds 60 to the variable `calls`, which was 1000."""
    del emulator  # says what is missing
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))
    regions = {VALUES: struct.pack("<64I", *range(3, 67)), RESULTS: bytes(256)}
    arguments = struct.pack("<QQI4x", VALUES, RESULTS, 60) + bytes(256)
    variables = {"calls": struct.pack("<I", 1000), "untouched": struct.pack("<I", 9)}
    return kerncap_capture(module_state(0), "_Z5tallyPKjPjj", regions, arguments, variables)


@pytest.mark.parametrize(
    ("version", "verdict", "said"),
    [
        pytest.param(1, Verdict.EQUAL, "all that the baseline writes", marks=pytest.mark.long),
        (2, Verdict.DIFFERENT, "1 values behind variable calls differ"),
        pytest.param(3, Verdict.DIFFERENT, "1 values behind variable calls", marks=pytest.mark.long),
        pytest.param(4, Verdict.DIFFERENT, "writes 4 bytes that the", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("replayer", [EmulatedReplayer, pytest.param(Unlogged, marks=pytest.mark.long)])
def test_variables_of_the_module_are_results_too(
    tally_capture, module_state, tmp_path, replayer, version, verdict, said
):
    capture = open_capture(tally_capture)
    subjects = subjects_of(capture, module_state(0), module_state(version), tmp_path)
    found = compare_code(capture, replayer(), subjects, allowance=Allowance(unknown=DataType.BYTES))
    assert (found.verdict, said in found.reason) == (verdict, True), found
    if verdict is Verdict.EQUAL:
        assert [one.output.argument for one in found.outputs][-1] == "variable calls"


@pytest.mark.parametrize("patched", [False, True])
def test_hidden_arguments_that_lead_nowhere_are_told_and_zeroed_when_that_is_asked_for(
    kerncap_capture, module_state, emulator, monkeypatch, native_build, rpl_cli, replayed_by_api, patched
):
    """By the emulator and on real ROCr: what the kernel itself finds there."""
    del emulator  # says what is missing
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))
    stale = 0x7F1234567000
    arguments = struct.pack("<Q", RESULTS) + bytes(80) + struct.pack("<Q", stale) + bytes(168)
    folder = kerncap_capture(module_state(0), "_Z13show_hostcallPm", {RESULTS: bytes(8)}, arguments, {})
    words = ["--patch-hidden-args"] if patched else []
    ran = rpl_cli("replay", "full-vm", str(folder), "--device", "gfx942-emu", "--json", *words)
    assert ran.exit_code == 0, ran.stderr
    told = json.loads(ran.stdout)["execution"]
    names = ["hidden_hostcall_buffer"]
    assert (told["stale_arguments"], told["patched_arguments"]) == (names, names if patched else [])
    assert patched or "lead into the captured process: hidden_hostcall_buffer" in ran.stderr
    request = ReplayRequest(folder, patch_hidden_args=patched, keep=(MemoryRange(RESULTS, 8),))
    found = [
        EmulatedReplayer().replay(request),
        replayed_by_api(folder, "emu", patch_hidden_args=patched, keep=request.keep),
    ]
    assert [(one.failure, one.kept) for one in found] == [
        (None, (struct.pack("<Q", 0 if patched else stale),))
    ] * 2
