"""`rpl selftest` end to end over stand-ins: what is right is confirmed, planted faults are not."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from rpl_selftest import checks
from rpl_selftest.bench import TRACED
from rpl_selftest.checks import candidates

CAPTURE = Path(__file__).parents[3] / "examples" / "captures" / "attention_values"
#: What the stand-in can show; captures and clocks need more than it has.
SHOWN = {
    *("known-work", "launches", "times", "overhead-timing", "overhead-counters"),
    *("counters-waves", "counters-instructions", "counters-flops", "counters-bytes", "registers"),
    *("left-processes", "left-files"),
}
CANDIDATES = {"candidates-null", "candidates-delayed"}
SAMPLED = {"thread-trace", "overhead-trace", "pc-samples", "samples-and-trace", "overhead-samples"}
NEED_A_GPU = {"doctor", "isolate", "replay", "replay-compare", "left-clocks"}


def names(lines, outcome):
    return {name for name, line in lines.items() if line["outcome"] == outcome}


def wrong_bytes(model):
    """A fault of one block: what L2 reads from memory."""
    model["work"]["read_bytes"] = round(model["work"]["read_bytes"] * 1.2)


def wrong_fmas(model):
    """One sequencer counts a class twice."""
    valu = model["work"]["valu_per_wave"]
    valu["FMA_F64"] *= 2


def slower_clock(model):
    model["nominal_ns"] = round(model["nominal_ns"] * 1.01)


@pytest.fixture
def only(monkeypatch):
    """``only("times", ...)`` leaves those checks; ``only(without=...)`` all but some."""

    def leave(*names, without=()):
        every = checks.all_checks()
        kept = tuple(one for one in every if one.name not in without and (not names or one.name in names))
        monkeypatch.setattr(checks, "all_checks", lambda: kept)

    return leave


@pytest.fixture
def few_candidates(monkeypatch):
    """As many with --full as with --quick: a process run takes a second here."""
    monkeypatch.setattr(candidates, "_NULL", (3, 3))
    monkeypatch.setattr(candidates, "_DELAYED", (2, 2))


def test_faults_are_refuted_by_their_lines_and_the_rest_is_confirmed(machine, only):
    """Times that are off by 1 %, and wrong counters of one block."""
    only(without=CANDIDATES)

    def both(model):
        wrong_bytes(model)
        slower_clock(model)

    machine.plant(both)
    lines, document = machine.selftest(exit_code=1)
    assert names(lines, "refuted") == {"times", "counters-bytes"}
    assert names(lines, "confirmed") == SHOWN - {"times", "counters-bytes"}
    assert names(lines, "not possible") == {*NEED_A_GPU, "counters-testbed"}
    assert lines["counters-testbed"]["found"] == "the folder of programs holds none of the testbed"
    assert "(+1.000%)" in lines["times"]["found"]
    assert lines["counters-bytes"]["found"].endswith(" of 536,870,912 bytes (110.00%)")
    assert document["verdict"] == "refuted"
    assert (document["origin"], document["device"]) == ("synthetic", "mi300x")


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_machine_where_all_is_right(machine, built_gemm, few_candidates):
    machine.add_testbed(built_gemm)
    machine.serve_trace()
    lines, document = machine.selftest("--full", exit_code=75)
    right = {*SHOWN, *CANDIDATES, *SAMPLED, "overhead-calls", "counters-testbed"}
    assert names(lines, "confirmed") == right
    assert names(lines, "not possible") == {*NEED_A_GPU, "ceilings"}
    assert document["verdict"] == "no verdict"  # the doctor knows that there is no GPU
    assert lines["candidates-null"]["figures"]["candidates"] == 3
    assert lines["candidates-delayed"]["figures"]["gain"] == pytest.approx(5 / 105, abs=1e-4)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_gain_that_is_not_there_is_refuted_by_its_line(machine, only, few_candidates):
    """The base has more steps and takes no longer: something is timed that is not the kernel."""
    only("times", *CANDIDATES)
    machine.plant(delay=1.0)
    lines, _ = machine.selftest(exit_code=1)
    assert names(lines, "refuted") == {"candidates-delayed"}
    assert lines["candidates-delayed"]["found"].startswith("0 of 2 accepted, at least 1 must be")


@pytest.mark.long
def test_a_fault_of_one_block_is_refuted_by_the_testbed(machine, only, built_gemm):
    def banked(model):
        model["work"]["lds_per_wave"] *= 2

    only("counters-testbed", "counters-instructions", "times")
    machine.add_testbed(built_gemm, banked)
    lines, _ = machine.selftest(exit_code=1)
    assert names(lines, "refuted") == {"counters-testbed"}
    assert lines["counters-testbed"]["found"].startswith("SQ_INSTS_LDS of gemm_tiled: ")


@pytest.mark.long
@pytest.mark.parametrize(
    ("trace", "refuted", "found"),
    [
        ({"fmas": TRACED.iterations - 1}, "thread-trace", "65,535 of 65,536 FMAs in 1 traced waves"),
        ({"vector_cycles": 12}, "samples-and-trace", "(samples and trace)"),
    ],
)
def test_a_trace_that_is_wrong_is_refuted_by_its_line(machine, only, trace, refuted, found):
    """It lost an instruction; or its cycles are others than where the samples are."""
    only(*SAMPLED)
    machine.serve_trace(**trace)
    lines, _ = machine.selftest("--full", exit_code=1)
    assert names(lines, "refuted") == {refuted}
    assert names(lines, "confirmed") == SAMPLED - {refuted}
    assert found in lines[refuted]["found"]


@pytest.mark.long
def test_collectors_that_slow_the_kernel_are_refuted_by_their_lines(machine, only):
    program = (machine.programs / "known_work").read_text()
    assert "time_ns + 6000" in program
    slowed = "(2.5 if 'traced.times' in sys.argv[4] else 1.2 if 'sampled.times' in sys.argv[4] else 1)"
    program = program.replace("time_ns + 6000", f"round((time_ns + 6000) * {slowed})")
    (machine.programs / "known_work").write_text(program)
    only(*SAMPLED, "overhead-timing")
    machine.serve_trace()
    lines, _ = machine.selftest("--full", exit_code=1)
    assert names(lines, "refuted") == {"overhead-trace", "overhead-samples"}
    assert "(+150.00%)" in lines["overhead-trace"]["found"]
    assert "(+20.00%)" in lines["overhead-samples"]["found"]


@pytest.mark.long
def test_without_a_decoder_nothing_about_traces_is_confirmed(machine, only):
    about_it = {"thread-trace", "overhead-trace", "samples-and-trace"}
    only(*about_it, "overhead-samples")
    lines, _ = machine.selftest("--full", exit_code=0)
    assert names(lines, "not possible") == about_it
    assert "no trace decoder was found" in lines["overhead-trace"]["found"]


@pytest.mark.long
def test_a_wrong_count_of_one_class_is_refuted_by_what_counts_it(machine):
    machine.plant(wrong_fmas)
    lines, _ = machine.selftest(exit_code=1)
    assert names(lines, "refuted") == {"counters-instructions", "counters-flops"}
    assert "SQ_INSTS_VALU_FMA_F64 of fma_long: 16,777,216, not 8,388,608" in lines["counters-flops"]["found"]


@pytest.mark.long
def test_a_collector_that_hangs_confirms_nothing_and_is_ended(machine):
    machine.monkeypatch.setenv("RPL_STANDIN_MISBEHAVE", "hang")
    lines, document = machine.selftest("--time-limit", 2, exit_code=75)
    about_it = {*SHOWN, *CANDIDATES} - {"known-work", "left-processes", "left-files"}
    assert about_it <= names(lines, "not possible")
    assert "did not end within 2 s" in lines["times"]["found"]
    assert {"left-processes", "left-files"} <= names(lines, "confirmed")
    assert document["origin"] is None


def test_without_tools_every_line_says_what_is_missing(rpl_cli, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    ran = rpl_cli("selftest", "-o", tmp_path / "out", "--json").assert_exit(75)
    lines = {line["check"]: line for line in ran.json()["lines"]}
    assert names(lines, "confirmed") == {"left-processes", "left-files"}
    assert names(lines, "refuted") == set()
    assert "rocprofv3 was not found" in lines["doctor"]["found"]
    assert lines["times"]["found"] == "there is no hipcc on PATH to build the program of known work"
    assert not (tmp_path / "settings").exists()


FLIPPING = """\
#!{python} -SE
import os, pathlib, subprocess, sys
ended = subprocess.run([{emulator!r}, *sys.argv[1:]])
for word in sys.argv[1:]:
    for written in pathlib.Path(word).parent.glob("written.bytes"):
        content = bytearray(written.read_bytes())
        content[0] ^= 1
        written.write_bytes(content)
sys.exit(ended.returncode)
"""


@pytest.fixture
def corrupting_emulator(tmp_path, monkeypatch, native):
    """An emulator that changes a bit of what a replay left in memory."""
    emulator = native / "native" / "emu" / "rpl-emu"
    folder = tmp_path / "emulator"
    folder.mkdir()
    (folder / "rpl-emu").write_text(FLIPPING.format(python=sys.executable, emulator=str(emulator)))
    (folder / "rpl-emu").chmod(0o755)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    return folder


def replays(rpl_cli, tmp_path, exit_code):
    """The lines on replays of a given capture, in the emulator."""
    programs = tmp_path / "programs"
    programs.mkdir(exist_ok=True)
    shutil.copytree(CAPTURE, programs / "capture", dirs_exist_ok=True)
    words = ("--device", "gfx942-emu", "--programs", programs, "-o", tmp_path / "out", "--json")
    ran = rpl_cli("selftest", *words).assert_exit(exit_code)
    return {line["check"]: line for line in ran.json()["lines"]}


@pytest.mark.long
def test_a_replay_that_corrupts_memory_is_refuted(rpl_cli, tmp_path, monkeypatch, corrupting_emulator):
    sound = replays(rpl_cli, tmp_path, 75)
    assert {"replay", "replay-compare"} <= names(sound, "confirmed")
    assert re.match(r"3 of 3 left the captured memory \(xxh3:", sound["replay"]["found"])
    monkeypatch.setenv("RPL_EMU_FOLDER", str(corrupting_emulator))
    lines = replays(rpl_cli, tmp_path, 1)
    assert "replay" in names(lines, "refuted")
    assert lines["replay"]["found"].startswith("0 of 3 left the captured memory")
    assert "replay-compare" in names(lines, "not possible")
    assert not {"times", "counters-waves"} & names(lines, "confirmed")


@pytest.mark.long
def test_nothing_that_identifies_anybody_is_written(machine, monkeypatch):
    import tarfile

    monkeypatch.setenv("USER", "secretive")
    monkeypatch.setenv("SECRET_TOKEN", "hunter2-token")
    monkeypatch.setattr("socket.gethostname", lambda: "queenbee.example.org")
    # An error of the program that names all of it.
    (machine.programs / "known_work").write_text(
        "#!/bin/sh\necho secretive@queenbee.example.org in $PWD of $HOME >&2; exit 3\n"
    )
    lines, _ = machine.selftest("--time-limit", 5, exit_code=75)
    assert "...@..." in lines["known-work"]["found"]
    out = machine.folder / "out"
    with tarfile.open(out / "selftest.tar.gz") as archive:
        assert archive.getnames() == ["selftest.json", "selftest.html", "known_work.hip"]
        assert {(m.uid, m.uname, m.mtime) for m in archive.getmembers()} == {(0, "", 0)}
        texts = [archive.extractfile(member).read().decode() for member in archive.getmembers()]
    texts += [(out / name).read_text() for name in ("selftest.json", "selftest.html")]
    for secret in ("secretive", "queenbee", "hunter2", str(machine.folder), f"{Path.home()}/"):
        assert not any(secret in text for text in texts), secret
    shown = machine.rpl("selftest", "--show", out / "selftest.tar.gz").assert_ok()
    assert "known_work.hip" in shown.stdout
    assert "nothing was recorded: no outcome says anything of a GPU" in shown.stdout
    document = machine.rpl("selftest", "--show", out / "selftest.tar.gz", "--json").json()
    assert document["selftest"] == json.loads((out / "selftest.json").read_text())


HIPCC = """\
#!/bin/sh
link="-L {libraries} -l:{hip} -Wl,--allow-shlib-undefined"
case " $* " in *" --offload-device-only "*) link= ;; esac
exec clang++-22 -x hip -mcode-object-version=5 --rocm-path={root}/usr --rocm-device-lib-path={bitcode} \
  -D__AMDGCN_WAVEFRONT_SIZE=64 -isystem {root}/usr/include "$@" $link
"""


@pytest.mark.long
def test_the_emulated_device_from_the_source_of_the_program(rpl_cli, tmp_path, monkeypatch, native):
    """Built by a compiler for a real runtime, run over the software GPU, captured and replayed there."""
    from rpl_testkit.requirements import absent, require

    require("clang++-22")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rpl" / "rocm-runtime"
    root = next(iter(sorted(cache.glob("*-hip-*/"))), None)
    if root is None:
        absent("rocm-runtime", f"none was fetched to {cache} (rpl emu get-runtime)")
    hip = next((root / "usr/lib/x86_64-linux-gnu").glob("libamdhip64.so.?"))
    bitcode = next(root.glob("usr/lib/llvm-*/lib/clang/*/amdgcn/bitcode"))
    compiler = tmp_path / "bin" / "hipcc"
    compiler.parent.mkdir()
    compiler.write_text(HIPCC.format(root=root, libraries=hip.parent, hip=hip.name, bitcode=bitcode))
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{compiler.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parents[1]))
    words = ("--device", "gfx942-emu", "-o", tmp_path / "out", "--json")
    document = rpl_cli("selftest", *words).assert_exit(75).json()
    lines = {line["check"]: line for line in document["lines"]}
    counted = {"launches", "counters-waves", "counters-instructions", "counters-flops", "registers"}
    counted |= {"counters-testbed"}
    replayed = {"isolate", "replay", "replay-compare"}
    left = {"left-processes", "left-files"}
    assert names(lines, "confirmed") == {"doctor", "known-work"} | counted | replayed | left
    assert names(lines, "refuted") == set()
    assert "modelled" in lines["times"]["found"]
    assert (document["origin"], document["device"]) == ("modelled", "gfx942-emu")
    page = (tmp_path / "out" / "selftest.html").read_text()
    assert "modelled: no outcome says anything of a GPU" in page
