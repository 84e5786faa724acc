"""What a new user has without compiler, checkout and LLVM: compiled parts, a runtime, a program that runs."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from rpl_testkit.requirements import absent, require

from .conftest import ROOT

pytestmark = [pytest.mark.long, pytest.mark.clang, pytest.mark.timeout(1800)]
LIBRARIES = Path("usr/lib/x86_64-linux-gnu")
#: Where rpl-emu looks for an LLVM of the system (native/emu/decode/disassembler.cpp).
LLVM = ("x86_64-linux-gnu/libLLVM*", "llvm-*/lib/libLLVM.so*", "llvm-*/lib/libLLVM-*.so*")
EMPTY = {"PATH": "/nonexistent"}


@pytest.fixture(scope="module")
def native_wheel(tmp_path_factory):
    """As `make dist` makes it: built, read by auditwheel, and named by what that found."""
    for program in ("cmake", "g++"):
        require(program)
    tool = _tool("build_distributions")
    folder = tmp_path_factory.mktemp("native")
    tool.build(ROOT / "native", folder, "wheel")
    return tool.mark_platform(folder)


def _tool(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        return importlib.import_module(name)


@pytest.fixture
def emulator_wheel(tmp_path):
    """Of rpl-emu, as `make dist` makes it: with the programs of the demo."""
    copy = shutil.copytree(ROOT / "plugins" / "rpl_emu", tmp_path / "rpl_emu")
    programs = _tool("build_demo_programs")
    programs.build(copy / programs.ARCHIVE.relative_to(ROOT / "plugins" / "rpl_emu"))
    _tool("build_distributions").build(copy, tmp_path / "emulator", "wheel")
    (wheel,) = (tmp_path / "emulator").iterdir()
    return wheel


@pytest.fixture
def reduction(tmp_path):
    """A program of the testbed, built elsewhere before; ends the test where no runtime can be had."""
    start = "import sys; from rpl_core.cli import main; sys.exit(main())"
    fetch = [sys.executable, "-c", start, "emu", "get-runtime"]
    done = subprocess.run(fetch, capture_output=True, text=True)
    if done.returncode == 69:
        absent("rocm-runtime", done.stderr.strip())
    runtime = Path(done.stdout.strip())
    library = next((runtime / LIBRARIES).glob("libamdhip64.so.?"))
    bitcode = next(runtime.glob("usr/lib/llvm-*/lib/clang/*/amdgcn/bitcode"))
    device = [
        "-x",
        "hip",
        "--offload-arch=gfx942",
        "-mcode-object-version=5",
        "-O3",
        "-D__AMDGCN_WAVEFRONT_SIZE=64",
    ]
    places = [f"--rocm-path={runtime / 'usr'}", f"--rocm-device-lib-path={bitcode}"]
    headers = ["-isystem", runtime / "usr/include", ROOT / "examples/testbed/reduction.hip"]
    link = [
        "-L",
        library.parent,
        f"-l:{library.name}",
        "-Wl,--allow-shlib-undefined",
        "-o",
        tmp_path / "reduction",
    ]
    subprocess.run([require("clang++-22"), *device, *places, *headers, *link], check=True)
    return tmp_path / "reduction"


def test_any_python_and_older_systems_take_the_wheel(native_wheel):
    assert native_wheel.name.endswith("-py3-none-manylinux_2_28_x86_64.whl")
    shown = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", native_wheel], capture_output=True, text=True, check=True
    ).stdout
    told = " ".join(shown.split())
    tags = re.findall(r'platform tag: "manylinux_2_(\d+)_x86_64"', told)
    assert tags, shown
    assert int(tags[0]) <= 28, shown
    assert "libstdc++" not in told


def test_a_new_user_runs_a_program_with_nothing_but_python(
    native_wheel, emulator_wheel, wheelhouse, fresh_environment, reduction
):
    fresh = fresh_environment
    fresh.install("rpl-gfx942", str(emulator_wheel), str(native_wheel), wheels=[wheelhouse])
    parts = (
        fresh.folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "rpl_native" / "lib"
    )
    for part in (
        "librpl_isolate.so",
        "rpl-replay",
        "rpl-emu",
        "librpl-emu-baseline.so",
        "softkfd-run",
        "libsoftkfd.so",
    ):
        asked = f"import rpl_native; print(rpl_native.path_of({part!r}))"
        assert Path(fresh.output("python", "-c", asked).strip()) == parts / part
        assert (parts / part).is_file()
    replayer = subprocess.run([parts / "rpl-replay"], capture_output=True, text=True)
    assert (replayer.returncode, replayer.stderr) == (64, "usage: rpl-replay PLAN RESULT\n")
    runtime = Path(fresh.output("rpl", "emu", "get-runtime", **EMPTY).strip())
    said = fresh.output("rpl", "emu", "run", "--", reduction, **EMPTY)
    assert said.count("wrong 0 of") == said.count("wrong") > 0
    run = fresh.folder / "run"
    fresh.output(
        "rpl", "profile", "--device", "gfx942-emu", "--roofline", "-o", run, "--", reduction, **EMPTY
    )
    assert (run / "profile.json").is_file()
    _demo_does_the_whole_job(fresh)
    # The same where the system has no LLVM: empty files lie over those that it has.
    bwrap = require("bwrap")
    libraries = {path.resolve() for pattern in LLVM for path in Path("/usr/lib").glob(pattern)}
    hidden = [word for one in sorted(libraries) for word in ("--ro-bind", "/dev/null", one)]
    words = [
        bwrap,
        "--dev-bind",
        "/",
        "/",
        *hidden,
        "--setenv",
        "PATH",
        "/nonexistent",
        fresh.folder / "bin" / "rpl",
    ]
    told = subprocess.run([*words, "emu", "doctor"], capture_output=True, text=True, check=True).stdout
    assert str(runtime) in told or "LLVM 21" in told, told
    done = subprocess.run([*words, "emu", "run", "--", reduction], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, said), done.stderr


def test_everything_together_takes_at_most_260_mb(
    native_wheel, emulator_wheel, wheelhouse, fresh_environment
):
    """As pip leaves it for users, with what Python compiled, in blocks of 4 KiB."""
    fresh = fresh_environment
    fresh.install("rocm-perf-lab", str(emulator_wheel), str(native_wheel), wheels=[wheelhouse])
    packages = fresh.folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    fresh.run("python", "-m", "compileall", "-q", packages)  # some packages hold files of other Pythons
    taken = Counter()
    for path in packages.rglob("*"):
        if path.is_file() and not path.is_symlink():
            taken[path.relative_to(packages).parts[0]] += -(-path.stat().st_size // 4096) * 4096
    assert taken["rpl_native"] > 5e6  # the wheel holds the compiled parts
    told = ", ".join(f"{name} {size / 1e6:.0f}" for name, size in taken.most_common(12))
    assert sum(taken.values()) <= 260e6, f"{sum(taken.values()) / 1e6:.0f} MB: {told}"
    # What is left out says so.
    (fresh.folder / "space.json").write_text('{"parameters": {"A": [1, 2, 3, 4, 5]}}')
    words = ("--space", "space.json", "--cmd-template", "true {A}", "--no-rocprof", "--budget", "4")
    done = fresh.run("rpl", "autotune", *words)
    assert (done.returncode, "pip install 'rpl-autotune[regression]'" in done.stderr) == (69, True), (
        done.stderr
    )
    fresh.output("rpl", "autotune", *words, "--strategy", "neighbours", "-o", "out")


def _demo_does_the_whole_job(fresh):
    """What `make demo` does in a checkout, with candidates that were built before."""
    told = fresh.output("rpl", "demo", "-o", "demo", **EMPTY)
    assert [line[:5] for line in told.splitlines() if re.match(r"\[\d/\d\] ", line)] == [
        f"[{number}/5]" for number in range(1, 6)
    ]
    assert "isolate its dominant kernel, attention_values" in told
    assert "exact: 8 of 8 reservations are where they were asked for" in told
    # Twice the attention kernel, then the two candidates.
    assert re.findall(r"^ +reproduced +(\w+)$", told, re.MULTILINE) == ["yes", "yes", "yes", "NO"]
    counts = re.findall(r"^ +(as it is|smooth_\w+) +([\d,]+) instructions", told, re.MULTILINE)
    base, unrolled, short = (int(count.replace(",", "")) for _, count in counts)
    assert short < unrolled < base / 2
    assert "nothing was measured, so nothing is accepted" in told
    folder = fresh.folder / "demo"
    assert (folder / "report.html").stat().st_size > 100_000
    for name in ("profile", "roofline", "dag", "analysis"):
        document = json.loads((folder / "attention" / f"{name}.json").read_text())
        assert document["provenance"]["origin"] == "modelled"
    assert "attention_values" in fresh.output("rpl", "report", "demo/attention", **EMPTY)
