"""`make demo`: from the source of a HIP program to its report, with no GPU, and with what there is here.

With clang and ROCm's runtime the attention pipeline of the testbed is built, profiled on the emulated device
`gfx942-emu`, its dominant kernel isolated and replayed, and another kernel optimized by a model. Without them
a captured launch that lies in this checkout is replayed instead, which needs neither. Without a C++ compiler
only recordings are analysed.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rpl_core.errors import RplError
from rpl_emu.demo.steps import (
    DEVICE,
    LAST_LINES,
    PROGRAM,
    RPL,
    FailedError,
    Steps,
    isolate_and_replay,
    profile,
    write_report,
)
from rpl_emu.software_gpu import Runtime, launcher_words

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path("build")
TESTBED = Path("examples/testbed")
CAPTURE = Path("examples/captures/attention_values")
OPTIMIZED = Path("examples/optimize/smooth.hip")
#: The first is what the tests use; the others know gfx942, too, and bring an LLVM that the emulator can use.
COMPILERS = ("22", "21", "20", "19")
#: Of the default runtime's device library, which no older compiler reads; trixie's is of LLVM 17.
BITCODE_LLVM = 21
LIBRARIES = "usr/lib/x86_64-linux-gnu"
EMULATOR, SOFTWARE_GPU, CAPTURE_TOOL, REPLAYER = "rpl-emu", "softkfd", "rpl_isolate", "rpl-replay"
#: What runs kernels on this CPU, what runs programs, and all of them (native/CMakeLists.txt).
EMULATOR_HERE, EMULATION_HERE, PROGRAMS = "rpl_emulator_here", "rpl_emulation_here", "rpl_programs"
_TELL_EVERY_S = 5
#: Exit code of rpl (docs/USER_GUIDE.md).
NO_VERDICT = 75


class NotHereError(Exception):
    """Something can't be had on this machine: one line that says what."""


def main() -> int:
    arguments = _arguments()
    os.chdir(ROOT)
    # This build, whatever else is installed or named.
    os.environ.update(RPL_EMU_FOLDER=str(ROOT / BUILD), RPL_NATIVE_FOLDER=str(ROOT / BUILD))
    folder = arguments.output or Path("rpl-runs", time.strftime("%Y%m%dT%H%M%SZ-demo", time.gmtime()))
    folder.mkdir(parents=True, exist_ok=True)
    now = time.time()
    began = arguments.began or now
    try:
        steps = _demo(folder, arguments.without_rocr)
        _tell(folder, steps, now - began, time.time() - began)
    except RplError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, help="folder for all results (rpl-runs/<time>-demo)")
    parser.add_argument(
        "--without-rocr", action="store_true", help="replay the capture of the checkout, as without a runtime"
    )
    parser.add_argument("--began", type=float, metavar="S", help="when make began, in seconds of the epoch")
    return parser.parse_args()


def _demo(folder: Path, without_rocr: bool) -> Steps:
    try:
        return _whole(folder, compiler(without_rocr=without_rocr))
    except NotHereError as reason:
        say(f"The way without ROCm's runtime (ROCr), since {reason}.\n")
    try:
        return _without_rocr(folder)
    except NotHereError as reason:
        say(f"A recorded application only, since {reason}.\n")
        return _recorded_only(folder)


def _steps(count: int) -> Steps:
    return Steps(count, say, os.environ)


def _whole(folder: Path, clang: str) -> Steps:
    """No core should wait: what a step needs is built before it, and the rest beside it."""
    steps = _steps(9)
    _configure(steps, EMULATOR, SOFTWARE_GPU, CAPTURE_TOOL, REPLAYER)
    source = TESTBED / f"{PROGRAM}.hip"
    with _building(steps, EMULATION_HERE, "finish the emulator and the software GPU, begun before step 1"):
        with steps.step("fetch Debian's packages of ROCr and HIP into a folder of their own", prepares=True):
            runtime = fetched_runtime(clang)
        with steps.step(f"build {source} by {clang}", prepares=True):
            words = [*compile_words(clang, runtime), *link_words(runtime)]
            program = _program(steps, words, source).absolute()
    # What stands for a GPU's driver where rpl's replayer runs.
    steps.environment["RPL_REPLAY_LAUNCHER"] = shlex.join(launcher_words(Runtime(runtime)))
    with _building(steps, PROGRAMS, "finish the capture tool and the replayer, begun before step 4"):
        profile(steps, folder, program)
        told = "nothing can be measured, so nothing is accepted"
        with steps.step(f"optimize a kernel of {OPTIMIZED} by a model: {told}"):
            _optimize(steps, folder, words)
    isolate_and_replay(steps, folder, program)
    write_report(steps, folder / PROGRAM, folder)
    return steps


def _optimize(steps: Steps, folder: Path, compiling: Sequence[str]) -> None:
    """In the folder of the results, since the program writes into the working directory."""
    shutil.copy(OPTIMIZED, folder)
    build = shlex.join([*compiling, "-o", "{output}"]).replace("'{", "{").replace("}'", "}")
    words = ("optimize", OPTIMIZED.name, "--device", DEVICE, "--metric", "modelled-issue-cycles")
    words += ("--auto-approve", "--output-file", "smooth.out:f32", "--rtol", "1e-5", "--max-iters", "1")
    say(f"      $ cd {folder}")
    # No verdict is what an emulated device comes to at best.
    told = steps.rpl(
        *(*words, "-o", "optimize", "--build", build, "./smooth 1024 1"),
        statuses=(0, NO_VERDICT),
        folder=folder,
    )
    steps.show(told)


def _without_rocr(folder: Path) -> Steps:
    steps = _steps(5)
    _configure(steps, EMULATOR)
    with _building(steps, EMULATOR_HERE, "build the emulator"):
        pass
    try:
        steps.call(["rpl", "emu", "doctor"])
    except FailedError:
        raise NotHereError(
            "there is no libLLVM 19 or newer, which reads instructions (libllvm22 of Debian)"
        ) from None
    with steps.step(f"verify the capture of a launch in {CAPTURE}"):
        steps.show(steps.rpl("capture", "verify", CAPTURE))
    with steps.step(f"replay it on the emulated device {DEVICE}, and compare the memory that it leaves"):
        steps.show(steps.rpl("replay", "full-vm", CAPTURE, "--device", DEVICE))
    _recorded(folder, steps)
    return steps


def _recorded_only(folder: Path) -> Steps:
    steps = _steps(2)
    _recorded(folder, steps)
    return steps


def _recorded(folder: Path, steps: Steps) -> None:
    with steps.step("profile a recorded synthetic application"):
        told = steps.rpl("demo", "--recorded", "-o", folder / "synthetic")
        steps.show(told, until="\n\nSpeed of light")
    write_report(steps, folder / "synthetic", folder)


def _tell(folder: Path, steps: Steps, packages_s: float, all_s: float) -> None:
    """``all_s``: since make began, or this program where it was started by hand.

    Ways that were tried before, and CMake's look at what is here, count as builds.
    """
    builds_s = all_s - packages_s - steps.own_s
    say(
        f"{all_s:.0f} s in all: {packages_s:.0f} s for Python's packages, "
        f"{builds_s:.0f} s for ROCm's and builds, {steps.own_s:.0f} s for rpl (beside builds)."
    )
    say("Nothing of it was measured on a GPU: times are modelled bounds or synthetic, and say so.\n")
    documents = sorted(path.parent for path in folder.glob("*/profile.json"))
    say(f"report      {folder / 'report.html'}")
    for run in documents:
        say(f"documents   {run}: profile.json, roofline.json, dag.json, analysis.json")
        say(f"look again  rpl report {run}; rpl explain --run {run}")
    say("\nTo go on in your shell, with rpl by its name and what was built here:\n")
    say(f"  . {Path(sys.prefix, 'bin', 'activate')}")
    if launcher := steps.environment.get("RPL_REPLAY_LAUNCHER"):
        say(f"  export RPL_REPLAY_LAUNCHER={shlex.quote(launcher)}")
        say(f"\nThen these run without a GPU: rpl replay reserve-check, rpl replay full-vm {folder}/capture")
    say("\nNow your own program:\n")
    say("  on a machine with a GPU   rpl profile --roofline -- ./your_app args")
    say("  a recording that you have rpl profile --from DIR_OR_FILE")
    if any(path.name == PROGRAM for path in documents):
        say("  without a GPU, emulated   rpl profile --device gfx942-emu --roofline -- ./your_app args")
    say("  what to do about it       rpl report; rpl report --format html -o report.html")


def compiler(*, without_rocr: bool = False) -> str:
    """The program. Raises NotHereError, also where it would be of no use."""
    if without_rocr:
        raise NotHereError("--without-rocr asks for it")
    for version in COMPILERS:
        if shutil.which(f"clang++-{version}") and shutil.which(f"ld.lld-{version}"):
            return f"clang++-{version}"
    raise NotHereError("there is no clang++-22 with ld.lld-22 (packages clang-22 and lld-22)")


def fetched_runtime(clang: str) -> Path:
    """The folder of one that the compiler reads. Raises NotHereError."""
    command = [*RPL, "emu", "get-runtime"]
    if int(clang.rpartition("-")[2]) < BITCODE_LLVM:
        command += ["--suite", "trixie"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise NotHereError(f"the packages of ROCr and HIP can't be had: {done.stderr.strip()}")
    return Path(done.stdout.strip())


def _configure(steps: Steps, *parts: str) -> None:
    """Raises NotHereError where not all ``parts`` can be built here."""
    for program in ("cmake", "g++"):
        if not shutil.which(program):
            raise NotHereError(f"there is no {program} to build the native part")
    steps.call(["cmake", "-S", ".", "-B", BUILD])
    offered = steps.call(["cmake", "--build", BUILD, "--target", "help"])
    for part in parts:
        if not re.search(rf"\b{part}\b", offered):
            raise NotHereError(f"headers are absent that {part} needs (`cmake -S . -B build` names them)")


@contextmanager
def _building(steps: Steps, target: str, title: str) -> Iterator[None]:
    """``target`` is built beside the block; the step ``title``, after it, waits for what is left."""
    jobs = str(len(os.sched_getaffinity(0)))
    command = ["cmake", "--build", str(BUILD), "-j", jobs, "--target", target]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        yield
    except BaseException:
        process.communicate()  # two builds in one folder at once would spoil it
        raise
    with steps.step(title, prepares=True):
        lines, told = [], time.monotonic()
        for line in process.stdout:
            lines.append(line)
            if (part := re.match(r"\[ *(\d+)%\]", line)) and time.monotonic() - told > _TELL_EVERY_S:
                say(f"      {part[1]} %")
                told = time.monotonic()
        if process.wait():
            raise FailedError(f"`{shlex.join(command)}` failed:\n{''.join(lines[-LAST_LINES:])}")


def compile_words(clang: str, runtime: Path) -> list[str]:
    """With ``{source}`` in place of the source, and without the output."""
    bitcode = next(runtime.glob("usr/lib/llvm-*/lib/clang/*/amdgcn/bitcode"))
    options = ["-x", "hip", "--offload-arch=gfx942", "-mcode-object-version=5", "-O3", "-g"]
    options += [f"--rocm-path={runtime / 'usr'}", f"--rocm-device-lib-path={bitcode}"]
    options += ["-D__AMDGCN_WAVEFRONT_SIZE=64", "-isystem", str(runtime / "usr/include"), "{source}"]
    return [clang, *options]


def link_words(runtime: Path) -> list[str]:
    """Behind ``compile_words``, for a whole program."""
    library = next((runtime / LIBRARIES).glob("libamdhip64.so.?"))
    return ["-L", str(library.parent), f"-l:{library.name}", "-Wl,--allow-shlib-undefined"]


def _program(steps: Steps, words: Sequence[str], source: Path) -> Path:
    """The program, built where it is older than its sources."""
    (BUILD / "testbed").mkdir(exist_ok=True)
    program = BUILD / "testbed" / source.stem
    newest = max(path.stat().st_mtime for path in (source, *source.parent.glob("*.h")))
    if not program.exists() or program.stat().st_mtime < newest:
        command = [word.replace("{source}", str(source)) for word in words]
        steps.call([*command, "-o", program])
    return program


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
