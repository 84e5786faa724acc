"""``rpl replay`` around a program that answers as the native replayer does, which is run in native/tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rpl_codeobject.kernel_code import KernelArgument
from rpl_vmreplay.interfaces import MemoryRange
from rpl_vmreplay.replay.captured_code import stale_arguments
from rpl_vmreplay.replay.outcome import Timing, ranges_of, timing_of

#: Plays rpl-replay: gives all addresses, moved by MOVED; or ends as ENDS says.
PROGRAM = """#!{python} -S
import json, os, signal, sys
if os.environ.get("ENDS"):
    print("last words")
    os.kill(os.getpid(), signal.SIGSEGV) if os.environ["ENDS"] == "crash" else sys.exit(1)
plan = json.load(open(sys.argv[1]))
moved = int(os.environ.get("MOVED", "0"))
environment = dict.fromkeys(("device", "product", "isa", "runtime", "runtime_version", "interface_version"))
reservations = [{{"requested": one["address"], "size": one["size"], "returned": one["address"] + moved}}
                for one in plan["reserve"]]
result = {{"environment": {{**environment, "pid": os.getpid()}}, "software_kfd": False, "attempts": 1,
          "warm_up_ns": [], "times_ns": [], "notes": [], "failure": None, "variables": [],
          "other_variables": [], "other_times_ns": [], "flushed_bytes": 0, "restored_bytes": None,
          "reservations": reservations}}
json.dump(result, open(sys.argv[2], "w"))
"""


#: Plays it where there is no GPU.
NO_GPU = """#!{python} -S
import json, os, sys
environment = dict.fromkeys(("device", "product", "isa", "runtime", "runtime_version", "interface_version"))
failure = {{"kind": "{kind}", "fact": "none", "cause": None, "next_step": "rpl doctor", "address": None}}
json.dump({{"environment": {{**environment, "pid": 1}}, "software_kfd": False, "attempts": 1,
           "warm_up_ns": [], "times_ns": [], "notes": [], "failure": failure, "variables": [],
           "other_variables": [], "other_times_ns": [], "flushed_bytes": 0, "restored_bytes": None,
           "reservations": []}}, open(sys.argv[2], "w"))
"""


class NoPlan:
    """In place of one that reads code objects."""

    stale, patched, deadline_s = (), (), None

    def __init__(self, request, memory, folder):
        self._path = folder / "plan.json"

    def write(self):
        self._path.write_text("{}")
        return self._path


@pytest.fixture
def reserve_check(rpl_cli, tmp_path, monkeypatch):
    """``reserve_check("--json")`` in an empty folder."""
    program = tmp_path / "build" / "rpl-replay"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return lambda *words: rpl_cli("replay", "reserve-check", "--native-folder", "build", *words)


def test_without_a_capture_three_documented_places_are_asked_for(reserve_check, monkeypatch):
    ran = reserve_check()
    assert (ran.exit_code, ran.stdout.splitlines()[-1]) == (
        0,
        "exact: 3 of 3 reservations are where they were asked for",
    )
    page = (Path(__file__).parents[3] / "docs" / "REPLAY.md").read_text()
    places = [line.split()[0] for line in ran.stdout.splitlines()[1:4]]
    assert all(place in page for place in places)
    monkeypatch.setenv("MOVED", "4096")
    ran = reserve_check("--json")
    document = json.loads(ran.stdout)
    assert (ran.exit_code, document["verdict"]) == (2, "relocated")
    assert document["reservations"][0] == {
        "requested": 0x4801400000,
        "size": 2 << 20,
        "returned": 0x4801401000,
        "exact": False,
    }


def test_the_capture_in_this_folder_is_taken(reserve_check, write_rpl_capture):
    folder = write_rpl_capture()
    for words in ((), (str(folder),), ("--capture-dir", str(folder))):
        asked = json.loads(reserve_check("--json", *words).stdout)["reservations"]
        assert [one["size"] for one in asked] == [(3 << 20) + 4096, 4096]


@pytest.mark.parametrize("command", ["full-vm", "reserve-check"])
def test_two_captures_contradict_each_other(rpl_cli, command, tmp_path):
    ran = rpl_cli("replay", command, str(tmp_path / "a"), "--capture-dir", str(tmp_path / "b"), "--json")
    assert ran.exit_code == 64
    assert json.loads(ran.stdout)["error"]["kind"] == "usage"


@pytest.mark.parametrize(
    "words",
    ["full-vm --iterations 0", "reserve-check --no-such-option", "compare one two", "compare a b c --ulps x"],
)
def test_words_that_cannot_be_used_are_told_as_json_too(rpl_cli, words):
    ran = rpl_cli("replay", *words.split(), "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["error"]["kind"]) == (64, "usage"), ran.stderr
    assert rpl_cli("replay", *words.split()).stdout == ""


def test_code_that_cannot_be_compared_is_told_as_json_too(rpl_cli, tmp_path):
    ran = rpl_cli("replay", "compare", *[str(tmp_path / name) for name in "abc"], "--json")
    assert (ran.exit_code, ran.json()["verdict"], ran.json()["error"]["kind"]) == (69, None, "missing")


def test_regions_that_touch_are_reserved_as_one():
    regions = [MemoryRange(0x1000, 0x1000), MemoryRange(0x2800, 0x100), MemoryRange(0x4000, 1)]
    capture = SimpleNamespace(
        regions=[SimpleNamespace(base=one.address, end=one.address + one.size) for one in regions]
    )
    assert ranges_of(capture) == (MemoryRange(0x1000, 0x2000), MemoryRange(0x4000, 0x1000))


@pytest.mark.parametrize(("ends", "code", "kind"), [("crash", 70, "internal"), ("early", 69, "missing")])
def test_a_replayer_that_says_nothing_is_told(reserve_check, monkeypatch, ends, code, kind):
    monkeypatch.setenv("ENDS", ends)
    ran = reserve_check("--json")
    error = json.loads(ran.stdout)["error"]
    assert (ran.exit_code, error["kind"], error["cause"]) == (code, kind, "last words")


def test_without_the_native_part_it_says_what_to_do(rpl_cli, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "rpl_native", None)
    monkeypatch.chdir(tmp_path)
    ran = rpl_cli("replay", "reserve-check")
    assert ran.exit_code == 69
    assert "the replayer is not installed: rpl-native is absent. Next: pip install rpl-native" in ran.stderr
    assert rpl_cli("replay", "--help").exit_code == 0


def test_without_a_gpu_or_its_program_the_emulated_device_is_offered(
    rpl_cli, monkeypatch, tmp_path, write_rpl_capture
):
    folder = write_rpl_capture()
    monkeypatch.setitem(sys.modules, "rpl_native", None)
    ran = rpl_cli("replay", "full-vm", str(folder), "--json")
    assert (ran.exit_code, ran.json()["error"]["kind"]) == (69, "missing")
    assert "Next: run it without a GPU: --device gfx942-emu" in ran.stderr
    program = tmp_path / "build" / "rpl-replay"
    program.parent.mkdir()
    for kind in ("no_runtime", "no_device"):
        program.write_text(NO_GPU.format(python=sys.executable, kind=kind))
        program.chmod(0o755)
        monkeypatch.setattr("rpl_vmreplay.replay.native_replayer.ReplayPlan", NoPlan)
        ran = rpl_cli("replay", "full-vm", str(folder), "--native-folder", str(program.parent), "--json")
        assert (ran.exit_code, ran.json()["error"]["kind"]) == (69, kind), ran.stderr
        assert ran.json()["error"]["next_step"].startswith("run it without a GPU: --device gfx942-emu")
        assert ran.json()["error"]["next_step"].endswith("or rpl doctor")


@pytest.mark.parametrize(
    ("variable", "words", "said"),
    [
        ("gfx942-emu", (), "the replayer emulator takes no addresses"),
        ("gfx942-emu", ("--device", "hsa"), "rpl-native is absent"),
        ("gfx942", (), "rpl-native is absent"),
        ("MI300X", (), "rpl-native is absent"),
        ("", (), "rpl-native is absent"),
        ("gfx", (), "unknown replayer 'gfx'"),
    ],
)
def test_the_device_of_the_settings_is_where_it_runs(rpl_cli, monkeypatch, tmp_path, variable, words, said):
    monkeypatch.setitem(sys.modules, "rpl_native", None)
    monkeypatch.chdir(tmp_path)
    if variable:
        monkeypatch.setenv("RPL_DEVICE", variable)
    ran = rpl_cli("replay", "reserve-check", *words)
    assert (ran.exit_code, said in ran.stderr) == (69, True), ran.stderr


@pytest.mark.parametrize("name", ["rpl", "rocm-perf", "rocm-perf-lab"])
def test_all_names_of_the_program_know_it(name, tmp_path):
    program = Path(sys.executable).with_name(name)
    done = subprocess.run(
        [program, "replay", "full-vm", "--json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 69, done.stderr
    document = json.loads(done.stdout)
    assert (document["error"]["kind"], document["reproduced"]) == ("missing", None)
    assert "dispatch.json is not in isolate_capture" in document["error"]["fact"]


def test_times_are_told_in_microseconds():
    times = [1000 * n for n in range(1, 21)]
    timing = timing_of(times)
    assert (timing.average, timing.min, timing.max, timing.median, timing.p95) == (10.5, 1, 20, 10.5, 19)
    assert timing.cv == pytest.approx(35**0.5 / 10.5)  # the variance of 1 to n is n (n + 1) / 12
    assert timing_of([5]) == Timing(0.005, 0.005, 0.005, 0.005, 0.005, None)
    assert timing_of([]).average is None


def test_hidden_arguments_that_lead_into_the_program_are_found(tmp_path):
    """Those that hold numbers, and pointers that are null, are not among them."""
    (tmp_path / "kernarg.bin").write_bytes(bytes(8) + b"\1" * 4 + bytes(4) + b"\2" * 8 + b"\3" * 8)
    kinds = ["hidden_printf_buffer", "hidden_block_count_x", "hidden_hostcall_buffer", "global_buffer"]
    arguments = [
        KernelArgument(offset=8 * place, size=8, value_kind=kind) for place, kind in enumerate(kinds)
    ]
    code = SimpleNamespace(kernel=SimpleNamespace(arguments=arguments))
    assert stale_arguments(SimpleNamespace(folder=tmp_path), code) == {"hidden_hostcall_buffer": (16, 8)}
