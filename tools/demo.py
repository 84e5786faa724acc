"""`make demo`: from the source of a HIP program to its report, with no GPU, and with what there is here.

With clang and ROCm's runtime the testbed is built, its attention pipeline profiled on the emulated device
`gfx942-emu`, its dominant kernel isolated and replayed, and another kernel optimized by a model. Without them
a captured launch that lies in this checkout is replayed instead, which needs neither. Without a C++ compiler
only recordings are analysed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path("build")
TESTBED = Path("examples/testbed")
CAPTURE = Path("examples/captures/attention_values")
PROGRAM, SIZE = "attention", "256"
OPTIMIZED = Path("examples/optimize/smooth.hip")
#: The first is what the tests use; the others know gfx942, too, and bring an LLVM that the emulator can use.
COMPILERS = ("22", "21", "20", "19")
#: Of the default runtime's device library, which no older compiler reads; trixie's is of LLVM 17.
BITCODE_LLVM = 21
LIBRARIES = "usr/lib/x86_64-linux-gnu"
EMULATOR, SOFTWARE_GPU, CAPTURE_TOOL, REPLAYER = "rpl-emu", "softkfd", "rpl_isolate", "rpl-replay"
#: Lines of output that show where a command failed.
_LAST_LINES = 15
_TELL_EVERY_S = 5
#: Exit code of rpl (docs/USER_GUIDE.md).
NO_VERDICT = 75


class NotHereError(Exception):
    """Something can't be had on this machine: one line that says what."""


class FailedError(Exception):
    """A command that should have worked did not."""


class Progress:
    """Numbered steps with their times; what is fetched and built is timed apart from what rpl does."""

    def __init__(self, steps: int) -> None:
        self._steps, self._number = steps, 0
        self.preparing, self._begin = 0.0, time.monotonic()

    @property
    def passed(self) -> float:
        """Seconds since the demo began."""
        return time.monotonic() - self._begin

    @contextmanager
    def step(self, title: str, *, prepares: bool = False) -> Iterator[None]:
        self._number += 1
        say(f"[{self._number}/{self._steps}] {title}")
        begin = time.monotonic()
        yield
        took = time.monotonic() - begin
        if prepares:
            self.preparing += took
        say(f"      {took:.1f} s\n")


def main() -> int:
    arguments = _arguments()
    os.chdir(ROOT)
    os.environ.update(RPL_EMU_FOLDER=str(ROOT / BUILD), RPL_NATIVE_FOLDER=str(ROOT / BUILD))
    folder = arguments.output or Path("rpl-runs", time.strftime("%Y%m%dT%H%M%SZ-demo", time.gmtime()))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _tell(folder, _demo(folder, arguments.without_rocr))
    except FailedError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, help="folder for all results (rpl-runs/<time>-demo)")
    parser.add_argument(
        "--without-rocr", action="store_true", help="replay the capture of the checkout, as without a runtime"
    )
    return parser.parse_args()


def _demo(folder: Path, without_rocr: bool) -> Progress:
    try:
        compiler = _compiler()
        return _whole(folder, compiler, _fetched_runtime(without_rocr, compiler))
    except NotHereError as reason:
        say(f"The way without ROCm's runtime (ROCr), since {reason}.\n")
    try:
        return _without_rocr(folder)
    except NotHereError as reason:
        say(f"A recorded application only, since {reason}.\n")
        return _recorded_only(folder)


def _whole(folder: Path, compiler: str, runtime: Path) -> Progress:
    progress = Progress(7)
    with progress.step("build the emulator, the software GPU, the capture tool and replayer", prepares=True):
        _build(EMULATOR, SOFTWARE_GPU, CAPTURE_TOOL, REPLAYER)
    os.environ["RPL_REPLAY_LAUNCHER"] = _launcher(runtime)
    with progress.step(f"build the testbed by {compiler}", prepares=True):
        compile_words = _compile_words(compiler, runtime)
        programs = _testbed(compile_words)
    say(f"      {', '.join(programs)}\n")
    run, application = folder / PROGRAM, (str(BUILD / "testbed" / PROGRAM), SIZE)
    with progress.step("profile the attention pipeline on the emulated device gfx942-emu"):
        show(
            rpl("profile", "--device", "gfx942-emu", "--roofline", "-o", run, "--", *application),
            until="\n\nSpeed of light",
        )
    kernel = _dominant(run)
    with progress.step(f"isolate its dominant kernel, {kernel}"):
        words = ("isolate", "--kernel", rf"^{re.escape(kernel)}\(", "-o", folder / "capture")
        show(rpl(*words, "--", _rpl(), "emu", "run", "--", *application))
    with progress.step("replay it without its program, and compare the memory that it leaves"):
        show(rpl("replay", "full-vm", folder / "capture", "--device", "gfx942-emu"))
        say("      The same by ROCr, at the captured addresses, over a software driver:")
        show(rpl("replay", "reserve-check", folder / "capture"))
        show(rpl("replay", "full-vm", folder / "capture"))
    with progress.step(
        f"optimize a kernel of {OPTIMIZED} by a model: nothing can be measured, so nothing is accepted"
    ):
        _optimize(folder, compile_words)
    with progress.step("write the report"):
        _report(run, folder)
    return progress


def _optimize(folder: Path, compile_words: Sequence[str]) -> None:
    """In the folder of the results, since the program writes into the working directory."""
    shutil.copy(OPTIMIZED, folder)
    build = shlex.join([*compile_words, "-o", "{output}"]).replace("'{", "{").replace("}'", "}")
    words = ("optimize", OPTIMIZED.name, "--device", "gfx942-emu", "--metric", "modelled-issue-cycles")
    words += ("--auto-approve", "--output-file", "smooth.out:f32", "--rtol", "1e-5", "--max-iters", "1")
    say(f"      $ cd {folder}")
    # No verdict is what an emulated device comes to at best.
    told = rpl(
        *(*words, "-o", "optimize", "--build", build, "./smooth 1024 1"),
        statuses=(0, NO_VERDICT),
        folder=folder,
    )
    show(told)


def _without_rocr(folder: Path) -> Progress:
    progress = Progress(4)
    with progress.step("build the emulator", prepares=True):
        _build(EMULATOR)
        if subprocess.run([_rpl(), "emu", "doctor"], capture_output=True).returncode:
            raise NotHereError(
                "there is no libLLVM 19 or newer, which reads instructions (libllvm22 of Debian)"
            )
    with progress.step(f"verify the capture of a launch in {CAPTURE}"):
        show(rpl("capture", "verify", CAPTURE))
    with progress.step("replay it on the emulated device gfx942-emu, and compare the memory that it leaves"):
        show(rpl("replay", "full-vm", CAPTURE, "--device", "gfx942-emu"))
    _recorded(folder, progress)
    return progress


def _recorded_only(folder: Path) -> Progress:
    progress = Progress(1)
    _recorded(folder, progress)
    return progress


def _recorded(folder: Path, progress: Progress) -> None:
    with progress.step("profile a recorded synthetic application"):
        show(rpl("demo", "-o", folder / "synthetic"), until="\n\nSpeed of light")
        _report(folder / "synthetic", folder)


def _report(run: Path, folder: Path) -> None:
    rpl("report", "--format", "html", "-o", folder / "report.html", run)


def _tell(folder: Path, progress: Progress) -> None:
    say(f"{progress.passed:.0f} s in all, {progress.preparing:.0f} s of it for builds.")
    say("Nothing of it was measured on a GPU: times are modelled bounds or synthetic, and say so.\n")
    documents = sorted(path.parent for path in folder.glob("*/profile.json"))
    say(f"report      {folder / 'report.html'}")
    for run in documents:
        say(f"documents   {run}: profile.json, roofline.json, dag.json, analysis.json")
        say(f"look again  rpl report {run}; rpl explain --run {run}")
    say("\nTo go on in your shell, with rpl by its name and what was built here:\n")
    say(f"  . {Path(sys.prefix, 'bin', 'activate')}")
    say(f"  export RPL_EMU_FOLDER={BUILD.absolute()} RPL_NATIVE_FOLDER={BUILD.absolute()}")
    if launcher := os.environ.get("RPL_REPLAY_LAUNCHER"):
        say(f"  export RPL_REPLAY_LAUNCHER={shlex.quote(launcher)}")
        say(f"\nThen these run without a GPU: rpl replay reserve-check, rpl replay full-vm {folder}/capture")
    say("\nNow your own program:\n")
    say("  on a machine with a GPU   rpl profile --roofline -- ./your_app args")
    say("  a recording that you have rpl profile --from DIR_OR_FILE")
    if any(path.name == PROGRAM for path in documents):
        say("  without a GPU, emulated   rpl profile --device gfx942-emu --roofline -- ./your_app args")
    say("  what to do about it       rpl report; rpl report --format html -o report.html")


def _launcher(runtime: Path) -> str:
    """What stands for a GPU's driver where rpl's replayer runs."""
    program = BUILD.absolute() / "native" / SOFTWARE_GPU / "softkfd-run"
    return shlex.join([str(program), "--executor", "emu", "--runtime", str(runtime)])


def _compiler() -> str:
    for version in COMPILERS:
        if shutil.which(f"clang++-{version}") and shutil.which(f"ld.lld-{version}"):
            return f"clang++-{version}"
    raise NotHereError("there is no clang++-22 with ld.lld-22 (packages clang-22 and lld-22)")


def _fetched_runtime(without_rocr: bool, compiler: str) -> Path:
    if without_rocr:
        raise NotHereError("--without-rocr asks for it")
    say("fetching Debian's packages of ROCr and HIP, once, into a folder of their own")
    command = [_rpl(), "emu", "get-runtime"]
    if int(compiler.rpartition("-")[2]) < BITCODE_LLVM:
        command += ["--suite", "trixie"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise NotHereError(f"the packages of ROCr and HIP can't be had: {done.stderr.strip()}")
    return Path(done.stdout.strip())


def _build(*targets: str) -> None:
    """Raises NotHereError for parts that can't be built here."""
    for program in ("cmake", "g++"):
        if not shutil.which(program):
            raise NotHereError(f"there is no {program} to build the native part")
    call(["cmake", "-S", ".", "-B", BUILD])
    offered = call(["cmake", "--build", BUILD, "--target", "help"])
    for target in targets:
        if not re.search(rf"\b{target}\b", offered):
            raise NotHereError(f"headers are absent that {target} needs (`cmake -S . -B build` names them)")
    for target in targets:
        _build_one(target)


def _build_one(target: str) -> None:
    jobs = str(len(os.sched_getaffinity(0)))
    command = ["cmake", "--build", str(BUILD), "-j", jobs, "--target", target]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    lines, told = [], time.monotonic()
    for line in process.stdout:
        lines.append(line)
        if (part := re.match(r"\[ *(\d+)%\]", line)) and time.monotonic() - told > _TELL_EVERY_S:
            say(f"      {target} {part[1]} %")
            told = time.monotonic()
    if process.wait():
        raise FailedError(f"`{shlex.join(command)}` failed:\n{''.join(lines[-_LAST_LINES:])}")


def _compile_words(compiler: str, runtime: Path) -> list[str]:
    """With ``{source}`` in place of the source, and without the output."""
    bitcode = next(runtime.glob("usr/lib/llvm-*/lib/clang/*/amdgcn/bitcode"))
    library = next((runtime / LIBRARIES).glob("libamdhip64.so.?"))
    options = ["-x", "hip", "--offload-arch=gfx942", "-mcode-object-version=5", "-O3", "-g"]
    options += [f"--rocm-path={runtime / 'usr'}", f"--rocm-device-lib-path={bitcode}"]
    options += ["-D__AMDGCN_WAVEFRONT_SIZE=64", "-isystem", str(runtime / "usr/include"), "{source}"]
    return [
        compiler,
        *options,
        "-L",
        str(library.parent),
        f"-l:{library.name}",
        "-Wl,--allow-shlib-undefined",
    ]


def _testbed(words: Sequence[str]) -> list[str]:
    """All programs that are older than their sources, side by side."""
    (BUILD / "testbed").mkdir(exist_ok=True)
    names = sorted(path.stem for path in TESTBED.glob("*.hip"))
    headers = tuple(TESTBED.glob("*.h"))
    older = [name for name in names if _is_older(BUILD / "testbed" / name, TESTBED / f"{name}.hip", *headers)]

    def build(name: str) -> str:
        source = str(TESTBED / f"{name}.hip")
        command = [word.replace("{source}", source) for word in words]
        return call([*command, "-o", BUILD / "testbed" / name])

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as compilers:
        list(compilers.map(build, older))
    return names


def _is_older(program: Path, *sources: Path) -> bool:
    newest = max(source.stat().st_mtime for source in sources)
    return not program.exists() or program.stat().st_mtime < newest


def _dominant(run: Path) -> str:
    """The kernel with the most time, without its arguments."""
    kernels = json.loads((run / "profile.json").read_text(encoding="utf-8"))["kernels"]
    name: str = max(kernels, key=lambda kernel: float(kernel["runtime_ms"] or 0))["name"]
    return name.partition("(")[0]


def rpl(*words: str | Path, statuses: tuple[int, ...] = (0,), folder: Path | None = None) -> str:
    """What the command printed; the command itself is shown."""
    command = [_rpl(), *map(str, words)]
    say("      $ " + shlex.join("rpl" if word == _rpl() else word for word in command))
    return call(command, statuses, folder)


def _rpl() -> str:
    return str(Path(sys.executable).with_name("rpl"))


def call(command: Sequence[str | Path], statuses: tuple[int, ...] = (0,), folder: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode not in statuses:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-_LAST_LINES:])
        raise FailedError(f"`{shlex.join(map(str, command))}` ended with {done.returncode}:\n{last}")
    return done.stdout


def show(text: str, until: str | None = None) -> None:
    for line in (text.partition(until)[0] if until else text).splitlines():
        say(f"      {line}".rstrip())


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
