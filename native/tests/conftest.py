"""What tests of the native part need: its build, a runtime of ROCm, and programs over the software KFD."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
from xdist import is_xdist_worker

from rpl_testkit.requirements import absent, require

from .emu_program import CORPUS, DEVICE, Emulator

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build"
PROGRAMS = Path(__file__).parent / "programs"
LIBRARIES = Path("usr/lib/x86_64-linux-gnu")
#: Older ROCr refuses the newer code objects that clang-22 makes by default.
CODE_OBJECT = "-mcode-object-version=5"
NOT_TO_BE_HAD = 69


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Processes of pytest-xdist share the build and the programs."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def native_build() -> Path:
    """The folder of the root CMake build, up to date, by the two commands of the README."""
    for program in ("cmake", "g++"):
        require(program)
    with one_at_a_time(BUILD):
        for command in (["cmake", "-S", ".", "-B", "build"], ["cmake", "--build", "build", "-j", "2"]):
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    if not (BUILD / "native" / "softkfd" / "libsoftkfd.so").is_file():
        absent("libdrm-dev", "without its headers the software KFD is not built")
    return BUILD


Runtime = Callable[..., Path]


@pytest.fixture(scope="session")
def rocm_runtime() -> Runtime:
    """``rocm_runtime("--suite", "trixie")``: what `rpl emu get-runtime` fetched."""

    def fetch(*options: str) -> Path:
        start = "import sys; from rpl_core.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", start, "emu", "get-runtime", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == NOT_TO_BE_HAD:
            absent("rocm-runtime", done.stderr.strip())
        assert done.returncode == 0, done.stderr
        root = Path(done.stdout.strip())
        print((root / "versions.txt").read_text())
        return root

    return fetch


@pytest.fixture(scope="session")
def hip_runtime(rocm_runtime: Runtime) -> Path:
    """The default, HIP 6.4, and not its fallback: ROCr, HIP, headers and device bitcode in a root folder."""
    return rocm_runtime("--suite", "forky")


@pytest.fixture(scope="session")
def hsa_runtime(hip_runtime: Path) -> Path:
    """The same, of which programs of plain HSA need ROCr alone."""
    return hip_runtime


@pytest.fixture(scope="session")
def programs_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared by the processes of one run of pytest.

    A pytest that a test starts inherits the worker's environment but is no worker: its parent
    folder is every run's, and holds what older sources made.
    """
    base = tmp_path_factory.getbasetemp()
    return (base.parent if is_xdist_worker(request) else base) / "native-programs"


Compile = Callable[[str, "list[str | Path]"], Path]


@pytest.fixture(scope="session")
def compiled(programs_folder: Path) -> Compile:
    """``compiled("name", [compiler, ...])``: what the command writes to ``-o``, once for a run of pytest."""

    def once(name: str, command: list[str | Path]) -> Path:
        with one_at_a_time(programs_folder):
            program = programs_folder / name
            if not program.exists():
                done = subprocess.run([*command, "-o", program], capture_output=True, text=True)
                assert done.returncode == 0, done.stderr
            return program

    return once


@pytest.fixture(scope="session")
def kernels(compiled: Compile) -> Path:
    """The code object of the tests' kernels."""
    require("ld.lld-22")
    device = ["-x", "hip", "--offload-arch=gfx942", "--offload-device-only", "--no-gpu-bundle-output"]
    command = [require("clang++-22"), *device, "-nogpulib", "-nogpuinc", CODE_OBJECT, "-O3"]
    return compiled("kernels.hsaco", [*command, PROGRAMS / "kernels.hip"])


@pytest.fixture(scope="session")
def shadows(compiled: Compile) -> Path:
    """What these kernels do, as a library for the software KFD."""
    options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-I", ROOT / "native" / "softkfd"]
    return compiled("shadows.so", [require("g++"), *options, PROGRAMS / "shadows.cpp"])


@pytest.fixture(scope="session")
def hsa_program(compiled: Compile, hsa_runtime: Path) -> Callable[[str], Path]:
    """``hsa_program("name")``: a program of plain HSA."""

    def build(name: str) -> Path:
        options = ["-std=c++20", "-O1", "-I", hsa_runtime / "usr" / "include", PROGRAMS / f"{name}.cpp"]
        library = ["-L", hsa_runtime / LIBRARIES, "-l:libhsa-runtime64.so.1", "-Wl,--allow-shlib-undefined"]
        # By the capture, in capture_scenarios.cpp.
        seen = [f"-Wl,--export-dynamic-symbol={one}" for one in ("rename", "pwrite")]
        return compiled(name, [require("g++"), *options, *library, *seen])

    return build


@pytest.fixture(scope="session")
def hip_program(compiled: Compile) -> Callable[..., Path]:
    """``hip_program("name", runtime)``: a program of ordinary HIP, host and device code by clang-22."""

    def build(name: str, runtime: Path, folder: Path = PROGRAMS, level: str = "-O3") -> Path:
        require("ld.lld-22")
        bitcode = next(runtime.glob("usr/lib/llvm-*/lib/clang/*/amdgcn/bitcode"))
        library = next((runtime / LIBRARIES).glob("libamdhip64.so.?"))
        device = ["-x", "hip", "--offload-arch=gfx942", "-D__AMDGCN_WAVEFRONT_SIZE=64", CODE_OBJECT, level]
        places = [f"--rocm-path={runtime / 'usr'}", f"--rocm-device-lib-path={bitcode}"]
        headers = ["-isystem", runtime / "usr" / "include", folder / f"{name}.hip"]
        link = ["-L", library.parent, f"-l:{library.name}", "-Wl,--allow-shlib-undefined"]
        command = [require("clang++-22"), *device, *places, *headers, *link]
        return compiled(f"{name}{'' if level == '-O3' else level}-{runtime.name}", command)

    return build


@attrs.frozen
class Ran:
    """One run over the software KFD."""

    status: int
    stdout: str
    stderr: str
    log: list[str]

    def kernels(self) -> list[str]:
        """The names of the kernels that ran, in order."""
        fields = [dict(part.split("=", 1) for part in line.split()[1:]) for line in self.log_of("kernel")]
        return [line["name"] for line in fields]

    def log_of(self, kind: str) -> list[str]:
        return [line for line in self.log if line.split()[0] == kind]


Over = Callable[..., Ran]


@pytest.fixture
def over_softkfd(native_build: Path, shadows: Path, tmp_path: Path) -> Over:
    """``over_softkfd(runtime, program, *arguments, faults="slow=20")``: run it with a runtime of its own.

    Kernels are run by ``shadows``, or with ``executor="emu"`` by the emulator alone.
    """

    def run(
        runtime: Path,
        program: Path,
        *arguments: str | Path,
        gpus: int = 1,
        faults: str = "",
        executor: str = "shadow",
        **variables: str,
    ) -> Ran:
        log = tmp_path / "softkfd.log"
        log.unlink(missing_ok=True)
        settings = {
            **variables,
            "SOFTKFD_GPUS": str(gpus),
            "SOFTKFD_FAULTS": faults,
            "SOFTKFD_SHADOWS": str(shadows) if executor == "shadow" else "",
            "SOFTKFD_LOG": str(log),
        }
        launcher = native_build / "native" / "softkfd" / "softkfd-run"
        done = subprocess.run(
            [launcher, "--executor", executor, "--runtime", runtime, program, *arguments],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            timeout=120,
        )
        lines = log.read_text().splitlines() if log.exists() else []
        return Ran(done.returncode, done.stdout, done.stderr, lines)

    return run


@attrs.frozen
class Captured:
    """One capture beside what the program wrote down of its memory (programs/known.h)."""

    folder: Path
    known: Path

    @property
    def dispatch(self) -> dict[str, Any]:
        return self._json("dispatch.json")

    @property
    def extras(self) -> dict[str, Any]:
        return self._json("capture.json")

    def _json(self, name: str) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.folder / name).read_text())
        return loaded

    def wrong(self, moment: str) -> list[str]:
        """Places whose bytes "before" or "after" the launch aren't those that the program knows."""
        files = sorted((self.known / str(self.extras["process"]["pid"])).glob(f"{moment}_*.bin"))
        assert files, "the program wrote nothing down"
        return [path.name for path in files if not self._holds(path, moment)]

    def _holds(self, path: Path, moment: str) -> bool:
        address, size = int(path.stem.partition("_")[2], 16), path.stat().st_size
        for begin, length, file in self._places(moment):
            if begin <= address and address + size <= begin + length:
                return _same_bytes(path, file, address - begin, size)
        # Of variables only the bytes before are kept.
        variables = self.extras["module_variables"]
        inside = any(one["address"] <= address < one["address"] + one["size"] for one in variables)
        return moment == "after" and inside

    def _places(self, moment: str) -> Iterator[tuple[int, int, Path]]:
        for region in self._json("memory_regions.json")["regions"]:
            name = f"region_{region['base']:x}.bin"
            folder = "memory" if moment == "before" else "memory_after"
            yield region["base"], region["size"], self.folder / folder / name
        if moment == "before":
            for one in self.extras["module_variables"]:
                yield one["address"], one["size"], self.folder / one["file"]


def _same_bytes(known: Path, file: Path, offset: int, size: int) -> bool:
    """Whether ``file`` holds at ``offset`` what ``known`` holds; holes of ``known`` are not compared."""
    packed = file.with_name(file.name + ".zst")
    if packed.exists():
        import zstandard

        with packed.open("rb") as stream:
            content = zstandard.ZstdDecompressor().stream_reader(stream).read()
        return content[offset : offset + size] == known.read_bytes()
    with known.open("rb") as expected, file.open("rb") as found:
        place = 0
        while place < size:
            try:
                place = os.lseek(expected.fileno(), place, os.SEEK_DATA)
            except OSError:
                return True
            expected.seek(place)
            found.seek(offset + place)
            part = expected.read(1 << 20)
            if found.read(len(part)) != part:
                return False
            place += len(part)
    return True


@attrs.frozen
class Isolated:
    """One run of a program below ``rpl isolate``."""

    exit_code: int
    stdout: str
    stderr: str
    captures: tuple[Captured, ...]

    @property
    def said(self) -> str:
        """The program's last line."""
        return next((line for line in self.stderr.splitlines() if line.startswith("right ")), "")

    @property
    def capture(self) -> Captured:
        (one,) = self.captures
        return one


Command = tuple["list[str]", "dict[str, str]", Path]


@pytest.fixture
def isolated_command(native_build: Path, shadows: Path, tmp_path: Path) -> Callable[..., Command]:
    """The words of ``rpl isolate`` for a program over the software KFD, its environment, and the folder."""
    if not (native_build / "native" / "isolate" / "librpl_isolate.so").is_file():
        absent("libxxhash-dev", "without its header the capture tool is not built")

    def command(
        runtime: Path,
        program: Path,
        *arguments: str | Path,
        kernel: str,
        dispatch: int = 0,
        gpus: int = 1,
        faults: str = "",
        options: tuple[str, ...] = (),
        executor: str = "shadow",
    ) -> Command:
        place = Path(tempfile.mkdtemp(dir=tmp_path))
        known = place / "known"
        known.mkdir()
        settings = {
            "KNOWN": str(known),
            "SOFTKFD_GPUS": str(gpus),
            "SOFTKFD_FAULTS": faults,
            "SOFTKFD_SHADOWS": str(shadows) if executor == "shadow" else "",
        }
        launcher = native_build / "native" / "softkfd" / "softkfd-run"
        folder = place / "out"
        words = ["isolate", "--native-folder", native_build, "--kernel", kernel, "--dispatch", dispatch]
        words += ["--after", "bytes", "-o", folder, "--time-limit", 100, *options, "--"]
        words += [launcher, "--executor", executor, "--runtime", runtime, program, *arguments]
        return [str(word) for word in words], {**os.environ, **settings}, folder

    return command


@pytest.fixture
def isolated(isolated_command: Callable[..., Command], rpl_cli: Any) -> Callable[..., Isolated]:
    """``isolated(runtime, program, *arguments, kernel="walk", dispatch=1, faults="slow=20")``."""

    def run(*program: Any, **settings: Any) -> Isolated:
        words, environment, folder = isolated_command(*program, **settings)
        ran = rpl_cli(*words, env=environment)
        found = sorted(path for path in folder.parent.glob("out*") if (path / "capture.json").exists())
        captures = tuple(Captured(path, folder.parent / "known") for path in found)
        return Isolated(ran.exit_code, ran.stdout, ran.stderr, captures)

    return run


@pytest.fixture
def capture_scenario(
    isolated: Callable[..., Isolated], hsa_runtime: Path, hsa_program: Callable[[str], Path], kernels: Path
) -> Callable[..., Isolated]:
    """``capture_scenario("drain", kernel="accumulate")``: of one of the programs in capture_scenarios.cpp."""

    def run(name: str, *, runtime: Path = hsa_runtime, **settings: Any) -> Isolated:
        return isolated(runtime, hsa_program("capture_scenarios"), name, kernels, **settings)

    return run


@pytest.fixture(scope="session")
def compared(compiled: Compile) -> Callable[[int], Path]:
    """``compared(2)``: that version of the kernels in compared.hip; 0 is the one that is captured."""

    def version(number: int) -> Path:
        require("ld.lld-22")
        device = ["-x", "hip", "--offload-arch=gfx942", "--offload-device-only", "--no-gpu-bundle-output"]
        command = [require("clang++-22"), *device, "-nogpulib", "-nogpuinc", CODE_OBJECT, "-O3"]
        return compiled(
            f"compared-{number}.hsaco", [*command, f"-DVERSION={number}", PROGRAMS / "compared.hip"]
        )

    return version


@pytest.fixture(scope="session")
def module_state(compiled: Compile) -> Callable[[int], Path]:
    """``module_state(1)``: that version of the kernels in module_state.hip; 0 is the one that is captured."""

    def version(number: int) -> Path:
        require("ld.lld-22")
        command = [require("clang++-22"), *DEVICE, "-nogpulib", "-nogpuinc", CODE_OBJECT, "-O3"]
        source = PROGRAMS / "module_state.hip"
        return compiled(f"module-state-{number}.hsaco", [*command, f"-DVERSION={number}", source])

    return version


@pytest.fixture(scope="session")
def module_pointers(compiled: Compile) -> Callable[[int], Path]:
    """``module_pointers(1)``: that version of the kernels in module_pointers.hip; 0 is the one that is
    captured."""

    def version(number: int) -> Path:
        require("ld.lld-22")
        command = [require("clang++-22"), *DEVICE, "-nogpulib", "-nogpuinc", CODE_OBJECT, "-O3"]
        source = PROGRAMS / "module_pointers.hip"
        return compiled(f"module-pointers-{number}.hsaco", [*command, f"-DVERSION={number}", source])

    return version


@pytest.fixture
def kerncap_capture(tmp_path: Path) -> Callable[..., Path]:
    """``kerncap_capture(code, "_Z1fPj", {base: bytes}, arguments, variables={"calls": bytes})``: as kerncap
    writes them, of a launch with 64 work-items."""

    def write(
        code: Path, kernel: str, regions: dict[int, bytes], arguments: bytes, variables: dict[str, bytes]
    ) -> Path:
        folder = tmp_path / "kerncap"
        for name in ("memory", "module_variables"):
            (folder / name).mkdir(parents=True)
        kinds = {"is_pool": True, "is_vmem": False, "contains_kernarg": False, "handle": 0, "access": 0}
        listed = [{"base": base, "size": len(content), **kinds} for base, content in regions.items()]
        for base, content in regions.items():
            (folder / "memory" / f"region_{base:x}.bin").write_bytes(content)
        told = []
        for name, content in variables.items():
            (folder / "module_variables" / f"00_{name}.bin").write_bytes(content)
            blob = {"blob": f"module_variables/00_{name}.bin", "executable_sha256": "00"}
            told.append({"name": name, "size": len(content), **blob})
        launch = {
            "mangled_name": f"{kernel} [clone .kd]", "demangled_name": kernel, "agent_name": "gfx942",
            "isa_name": "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", "wavefront_size": 64,
            "kernel_object": 0, "grid": [64, 1, 1], "block": [64, 1, 1], "group_segment_size": 0,
            "private_segment_size": 0, "kernarg_size": len(arguments), "dispatch_index": 0,
        }  # fmt: skip
        (folder / "dispatch.json").write_text(json.dumps(launch))
        (folder / "memory_regions.json").write_text(json.dumps({"regions": listed}))
        (folder / "module_variables.json").write_text(json.dumps({"variables": told}))
        (folder / "kernarg.bin").write_bytes(arguments)
        shutil.copy(code, folder / "kernel.hsaco")
        (folder / "metadata.json").write_text("{}")
        (folder / "capture_complete").write_text("")
        return folder

    return write


@pytest.fixture
def emulator(request: pytest.FixtureRequest, tmp_path: Path) -> Emulator:
    """The built emulator, or the one of tools/emu-mutants, with a folder of the test for files."""
    require("ld.lld-22")
    other = os.environ.get("RPL_TEST_EMULATOR")
    program = Path(other or request.getfixturevalue("native_build") / "native" / "emu" / "rpl-emu")
    done = subprocess.run([program, "doctor"], capture_output=True, text=True)
    if done.returncode == NOT_TO_BE_HAD:
        absent("libllvm22", done.stderr.strip())
    return Emulator(program, tmp_path)


@pytest.fixture(scope="session")
def examples(compiled: Compile) -> Path:
    """Kernels with usual signatures, and some that go wrong, for the emulator."""
    return compiled("examples.hsaco", [require("clang++-22"), *DEVICE, "-O3", CORPUS / "examples.hip"])


@attrs.frozen
class Replayed:
    """One `rpl replay`."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.stdout)
        return loaded

    @property
    def kind(self) -> str | None:
        """Of the error."""
        error = self.document["error"]
        return None if error is None else error["kind"]


@pytest.fixture
def replay(
    native_build: Path, shadows: Path, hsa_runtime: Path, rpl_cli: Any, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Replayed]:
    """``replay(capture, "--iterations", "3", faults="lost=2")``; ``command="reserve-check"``.

    Kernels are run by ``shadows``, or with ``executor="emu"`` by the emulator alone.
    """
    if not (native_build / "native" / "replay" / "rpl-replay").is_file():
        absent("libxxhash-dev", "without its header the replayer is not built")

    def run(
        capture: Captured | Path,
        *options: str,
        command: str = "full-vm",
        runtime: Path = hsa_runtime,
        gpus: int = 1,
        faults: str = "",
        executor: str = "shadow",
        form: tuple[str, ...] = ("--json",),
    ) -> Replayed:
        known = shadows if executor == "shadow" else ""
        settings = {"GPUS": gpus, "FAULTS": faults, "SHADOWS": known}
        for name, value in settings.items():
            monkeypatch.setenv(f"SOFTKFD_{name}", str(value))
        launcher = f"{native_build / 'native' / 'softkfd' / 'softkfd-run'} --executor {executor}"
        launcher += f" --runtime {runtime}"
        words = ["--native-folder", str(native_build), "--replay-launcher", launcher, *form, *options]
        folder = capture.folder if isinstance(capture, Captured) else capture
        ran = rpl_cli("replay", command, str(folder), *words)
        return Replayed(ran.exit_code, ran.stdout, ran.stderr)

    return run


@pytest.fixture
def replayed_by_api(
    native_build: Path, shadows: Path, hsa_runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """``replayed_by_api(capture, keep=(...))``: what plugins get of the replayer itself."""
    from rpl_core.interfaces.options import Options
    from rpl_vmreplay.interfaces import ReplayRequest
    from rpl_vmreplay.replay.native_replayer import NativeReplayer

    def run(capture: Captured | Path, executor: str = "shadow", **request: Any) -> Any:
        folder = capture.folder if isinstance(capture, Captured) else capture
        monkeypatch.setenv("SOFTKFD_SHADOWS", str(shadows) if executor == "shadow" else "")
        launcher = native_build / "native" / "softkfd" / "softkfd-run"
        words = (str(launcher), "--executor", executor, "--runtime", str(hsa_runtime))
        options = Options({"replay-launcher": words})
        return NativeReplayer(native_build).replay(ReplayRequest(folder, options=options, **request))

    return run


@pytest.fixture
def seal_again() -> Callable[[Path], None]:
    """``seal_again(folder)``: what a changed capture says of its own files is true again."""
    return _seal_again


@pytest.fixture
def change_the_hash() -> Callable[[Captured], None]:
    """As if the captured launch had left something else: another hash of what it changed."""

    def change(capture: Captured) -> None:
        changed = next(one for one in capture.extras["memory"]["regions"] if one["changed_by_launch"])
        path = capture.folder / "memory" / f"region_{changed['base']:x}.post.xxh3"
        path.write_bytes(bytes(8) + path.read_bytes()[8:])
        for kept in capture.folder.glob("memory_after/*"):
            kept.unlink()
        told = capture.extras
        told["memory"]["post"] = "hashes"
        for one in told["memory"]["regions"]:
            one["hashes"] = {}
        (capture.folder / "capture.json").write_text(json.dumps(told))
        _seal_again(capture.folder)

    return change


def _seal_again(folder: Path) -> None:
    import xxhash

    sentinel = json.loads((folder / "rpl_capture_complete").read_text())
    for name in sentinel["files"]:
        content = (folder / name).read_bytes()
        sentinel["files"][name] = {"size": len(content), "xxh3": xxhash.xxh3_64_hexdigest(content)}
    (folder / "rpl_capture_complete").write_text(json.dumps(sentinel))


@pytest.fixture(scope="session")
def compiled_for(compiled: Compile, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``compiled_for("gfx90a")``: the tests' kernels for another GPU, with other options, or changed."""
    require("ld.lld-22")

    def build(gpu: str, *options: str, change: tuple[str, str] | None = None) -> Path:
        device = ["-x", "hip", f"--offload-arch={gpu}", "--offload-device-only", "--no-gpu-bundle-output"]
        command = [require("clang++-22"), *device, "-nogpulib", "-nogpuinc", CODE_OBJECT, "-O3", *options]
        name = "-".join(["kernels", gpu, *options]).replace("=", "-")
        if change is None:
            return compiled(f"{name}.hsaco", [*command, PROGRAMS / "kernels.hip"])
        source = tmp_path_factory.mktemp("changed") / "kernels.hip"
        source.write_text((PROGRAMS / "kernels.hip").read_text().replace(*change))
        return compiled(f"{name}-changed.hsaco", [*command, "-I", PROGRAMS, source])

    return build


@pytest.fixture(scope="session")
def other_arguments(compiled_for: Callable[..., Path]) -> Path:
    """The tests' kernels with wider arguments."""
    return compiled_for("gfx942", "-Dint=long")


@pytest.fixture
def hip_command(hip_runtime: Path) -> Callable[[str, str], list[str]]:
    """``hip_command(source, output)``: the words that compile a program of HIP."""
    require("ld.lld-22")
    bitcode = next(hip_runtime.glob("usr/lib/llvm-*/lib/clang/*/amdgcn/bitcode"))
    library = next((hip_runtime / "usr/lib/x86_64-linux-gnu").glob("libamdhip64.so.?"))

    def words(source: str, output: str) -> list[str]:
        device = ["-x", "hip", "--offload-arch=gfx942", "-D__AMDGCN_WAVEFRONT_SIZE=64"]
        places = [f"--rocm-path={hip_runtime / 'usr'}", f"--rocm-device-lib-path={bitcode}"]
        headers = ["-isystem", str(hip_runtime / "usr" / "include"), source]
        link = ["-L", str(library.parent), f"-l:{library.name}", "-Wl,--allow-shlib-undefined", "-o", output]
        code = ["-mcode-object-version=5", "-O3", "-g"]
        return [str(require("clang++-22")), *device, *code, *places, *headers, *link]

    return words
