"""Projects of which nobody says how they are built: what is found there makes the program anew.

Real CMake, make and ninja with the stand-in for hipcc, on ``projects/scale``, which is built once as its user
would. Each test edits one kernel and runs the user's command with what was built.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from rpl_core.errors import MissingError, UsageError
from rpl_core.plugins.host import Contribution
from rpl_optimize.build.builders import BuiltProgram, ProgramBuilder, choose_builder
from rpl_optimize.build.project_build import compilations
from rpl_optimize.interfaces.builder import Build, Builder, BuildFailure, BuildRequest, BuildSystem
from rpl_optimize.plugin import rpl_builders
from rpl_optimize.running.program_word import KernelFile, Launches, choose_file, mapped_files, why_no_mounts
from rpl_testkit.hipcc_standin import install_hipcc, standin_places
from rpl_testkit.requirements import require

pytestmark = [
    pytest.mark.clang,
    pytest.mark.skipif(why_no_mounts() is not None, reason="nothing can be mounted here"),
]
PROJECT = Path(__file__).parent / "projects" / "scale"
KERNEL, HEADER = "src/kernel.hip", "kernels/sum.hpp"
QUERY = "build/.cmake/api/v1/query"


@attrs.frozen
class UsersProject:
    """The project as its user has it in ``root``, who stands there."""

    root: Path

    def run(self, *words: str) -> str:
        done = subprocess.run(words, cwd=self.root, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def builder(
        self,
        source: str,
        *command: str,
        binary: str | None = None,
        more: tuple[BuildSystem, ...] = (),
        **options: Any,
    ) -> ProgramBuilder:
        request = BuildRequest(
            command=command,
            source=Path(source),
            place=self.root,
            binary=None if binary is None else Path(binary),
            **options,
        )
        systems = [Contribution("optimize", system) for system in (*rpl_builders(), *more)]
        return choose_builder(request, systems, print)

    def rebuilt(self, builder: ProgramBuilder, source: str, place: Path, more: str = "") -> BuiltProgram:
        """With a kernel that adds 11 instead of 1, and ``more`` behind it; the user's tree stays as it is."""
        before, original = self._files(), (self.root / source).read_bytes()
        assert b"+ 1.0f" in original
        build = builder.build(original.replace(b"+ 1.0f", b"+ 11.0f") + more.encode(), place, original)
        assert isinstance(build, BuiltProgram), build
        assert self._files() == before
        return build

    def _files(self) -> dict[Path, tuple[int, int]]:
        files = (path for path in self.root.rglob("*") if path.is_file())
        return {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in files}


@pytest.fixture(scope="module")
def scale(tmp_path_factory):
    """The example, built with CMake; a stand-in for hipcc is first on PATH."""
    for program in ("clang++-22", "ld.lld-22", "cmake", "ninja"):
        require(program)
    folder = tmp_path_factory.mktemp("found")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RPL_SANDBOX_READ", standin_places())
        patch.setenv("PATH", str(install_hipcc(folder / "tools").parent), prepend=":")
        project = UsersProject(Path(shutil.copytree(PROJECT, folder / "scale")))
        (project.root / QUERY).mkdir(parents=True)
        (project.root / QUERY / "codemodel-v2").touch()
        project.run("cmake", "-S", ".", "-B", "build", "-G", "Ninja")
        project.run("cmake", "--build", "build")
        yield project


def test_the_cmake_target_that_makes_the_program_is_built(scale, tmp_path):
    builder = scale.builder(KERNEL, "./build/bin/scale_app", "7")
    assert builder.system == "cmake"
    build = scale.rebuilt(builder, KERNEL, tmp_path / "b")
    own = ("cmake", "--build", str(scale.root / "build"), "--target", "app", "--verbose")
    assert build.commands[0] == own
    assert scale.run(*builder.command_for(build)) == "18"
    assert scale.run("./build/bin/scale_app", "7") == "8"
    assert build.host_code.passed, build.host_code
    assert "/src/main.cpp\n" not in build.log.read_text(), "only what depends on the source"
    # What a script starts is exchanged where the script finds it, in a copy of the directory too.
    scripted = scale.builder(KERNEL, "./run.sh", "7", binary="build/bin/scale_app")
    command = scripted.command_for(build)
    assert command[-2:] == ("./run.sh", "7"), "a script is never replaced"
    assert scale.run(*command) == "18"
    copy = UsersProject(Path(shutil.copytree(scale.root, tmp_path / "work")))
    assert copy.run(*command) == "18"
    assert (scale.run("./run.sh", "7"), copy.run("./run.sh", "7")) == ("8", "8")


@pytest.mark.long
def test_a_kernel_in_a_header_of_a_library_that_python_loads(scale, tmp_path):
    words = (sys.executable, "driver.py", "build/libscale.so", "7")
    builder = scale.builder(HEADER, *words)
    build = scale.rebuilt(builder, HEADER, tmp_path / "b")
    assert builder.system == "cmake"
    assert build.host_code.passed, build.host_code
    assert scale.run(*builder.command_for(build)) == "18"
    assert scale.run(*words) == "8"
    build = scale.rebuilt(
        builder, HEADER, tmp_path / "c", more="inline int more() { return 3; } int own = more();"
    )
    assert build.host_code.passed is False
    assert "library.hip" in build.host_code.reason


@pytest.mark.long
def test_make_builds_what_its_makefile_names_and_all_that_includes_a_header(scale, tmp_path):
    scale.run("make", "out/program", "out/libsum.so")
    builder = scale.builder(KERNEL, "out/program", "7")
    assert (builder.system, builder.builder.words) == ("make", ("make", "out/program"))
    build = scale.rebuilt(builder, KERNEL, tmp_path / "b")
    assert scale.run(*builder.command_for(build)) == "18"
    assert build.host_code.passed, build.host_code
    builder = scale.builder(HEADER, sys.executable, "driver.py", "out/libsum.so", "7")
    assert scale.run(*builder.command_for(scale.rebuilt(builder, HEADER, tmp_path / "c"))) == "18"


def test_several_builds_that_fit_are_a_question(scale, tmp_path):
    root = Path(shutil.copytree(PROJECT, tmp_path / "scale"))
    other = UsersProject(root)
    for name in ("one", "two"):
        (root / "builds" / name).mkdir(parents=True)
        (root / "builds" / name / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={root}\n")
    with pytest.raises(UsageError, match=r"builds/one, builds/two") as caught:
        other.builder(KERNEL, "bin/scale_app")
    assert "--build 'cmake --build builds/one'" in caught.value.one_line()
    # The directory that holds the program is the one, and without CMake's file API the name decides.
    entry = {"directory": str(root), "file": "k.hip", "command": "c++ -c k.hip -o CMakeFiles/scale.dir/k.o"}
    (root / "builds" / "two" / "compile_commands.json").write_text(json.dumps([entry]))
    for program, words in (("libscale.so", ("--target", "scale", "--verbose")), ("app", ("--verbose",))):
        builder = other.builder(KERNEL, f"builds/two/{program}").builder
        assert builder.words == ("cmake", "--build", str(root / "builds" / "two"), *words)
    shutil.rmtree(root / "builds")
    for name in ("src", "out"):
        (root / name).mkdir(exist_ok=True)
        (root / name / "Makefile").write_text("program:\n")
    (root / "Makefile").unlink()
    with pytest.raises(UsageError, match=r"several directories name program: out, src") as caught:
        other.builder(KERNEL, "out/program")
    assert "--build 'make -C out'" in caught.value.one_line()
    shutil.move(root / "out" / "Makefile", root / "Makefile")
    (root / "src" / "Makefile").unlink()
    below = UsersProject(root / "out")
    builder = below.builder("../src/kernel.hip", "./program").builder
    assert (builder.words, builder.place, builder.root) == (("make",), root, root)


def test_what_only_starts_other_programs_is_never_replaced(scale):
    for words in (("./run.sh", "7"), (sys.executable, "driver.py", "7"), ("sh", "-c", "./run.sh 7")):
        with pytest.raises(UsageError, match="holds no device code, so it is not what is built") as caught:
            scale.builder(KERNEL, *words)
        assert "--binary FILE" in caught.value.one_line()


@pytest.mark.long
def test_a_file_of_device_code_that_a_program_loads(scale, tmp_path):
    """The program stays the user's own, so there is no host code to compare."""
    scale.run("make", "out/loader", "out/module.co")
    words = ("out/loader", "out/module.co", "7")
    assert scale.run(*words) == "8"
    script = scale.root / "load.sh"
    script.write_text(f"#!/bin/sh\nexec {' '.join(words)}\n")
    script.chmod(0o755)
    builder = scale.builder("src/module.hip", "./load.sh", binary="out/module.co")
    build = scale.rebuilt(builder, "src/module.hip", tmp_path / "b")
    assert (builder.system, build.host_code.reason) == ("make", "what is built holds device code alone")
    assert scale.run(*builder.command_for(build)) == "18"
    (scale.root / "Makefile").rename(scale.root / "Makefile.away")
    builder = scale.builder("src/module.hip", *words)
    (scale.root / "Makefile.away").rename(scale.root / "Makefile")
    build = scale.rebuilt(builder, "src/module.hip", tmp_path / "c")
    assert builder.system == "compiler"
    command = builder.command_for(build)
    assert (command[0], command[2]) == (words[0], words[2])
    grow = Launches(None, frozenset({"grow(float*)"}), frozenset())
    assert choose_file((grow,), {}, scale.root, None).path == scale.root / "out" / "module.co"
    assert scale.run(*command) == "18"


def test_the_file_that_a_command_maps_is_found(scale, tmp_path):
    """A driver in Python: by what the dynamic linker says, and by what the profiler names."""
    place, log = scale.root, tmp_path / "mapped"
    (scale.root / "elsewhere").mkdir(exist_ok=True)
    words = ("sh", "-c", "cd elsewhere; exec python3 ../driver.py ../build/libscale.so 7")
    variables = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(log)}
    subprocess.run(words, cwd=place, env=os.environ | variables, check=True)
    library = scale.root / "build" / "libscale.so"
    add = Launches(None, frozenset({"add(float*)"}), frozenset())
    assert choose_file((add,), mapped_files(log), place, None).path == library
    assert choose_file((add,), mapped_files(log), place, (scale.root / HEADER).read_bytes()).path == library
    program = scale.root / "build" / "bin" / "scale_app"
    named = Launches(1, frozenset({"scale(float*)"}), frozenset({program}))
    assert choose_file((named,), {}, place, None).path == program
    with pytest.raises(UsageError, match=r"launches no kernel of the source") as caught:
        choose_file((named,), {}, place, b"__global__ void other()")
    assert "scale" in caught.value.one_line()
    both = Launches(1, named.kernels | add.kernels, frozenset({program, library}))
    with pytest.raises(UsageError, match=r"several files hold kernels .*scale_app, .*libscale.so"):
        choose_file((both,), {}, place, None)
    assert choose_file((Launches(1, frozenset({"rtc"}), frozenset()),), {}, place, None) == KernelFile(
        None, ("rtc",)
    )


def test_what_no_file_holds_needs_a_plugin_that_overrides_it(scale):
    with pytest.raises(
        MissingError, match=r"no file holds rtc: it is compiled while the program runs"
    ) as caught:
        scale.builder(KERNEL, "build/bin/scale_app", kernels_in_memory=("rtc",))
    assert "overrides_code" in caught.value.one_line()

    class Overriding(BuildSystem):
        name, summary, priority, overrides_code = "device", "exchanges code objects", -1, True

        def builder(self, request: BuildRequest) -> Builder:
            assert request.kernels_in_memory == ("rtc",)
            return Exchanging()

    class Exchanging(Builder):
        summary = "exchanges code objects"

        def build(self, text: bytes, directory: Path) -> BuildFailure:
            return BuildFailure("for tests", (), 0.0, None)

        def command_for(self, build: Build) -> tuple[str, ...]:
            return ("with", str(build.binary))

    found = scale.builder(KERNEL, "x", kernels_in_memory=("rtc",), more=(Overriding(),))
    assert found.system == "device"


@pytest.mark.long
def test_an_extension_of_python_is_built_by_what_its_build_left(scale, tmp_path, monkeypatch):
    """As PyTorch does it: a file for ninja far from the source, or a setup.py that builds beside itself."""
    source, cache = scale.root / "src" / "library.hip", tmp_path / "cache" / "torch_extensions" / "sum"
    cache.mkdir(parents=True)
    rules = (
        "ninja_required_version = 1.3",
        "nvcc = hipcc",
        "rule cuda_compile",
        "  depfile = $out.d",
        "  deps = gcc",
        "  command = $nvcc -O1 -fPIC -MD -MF $out.d -c $in -o $out",
        "rule link",
        "  command = $nvcc $in -shared -o $out",
        f"build library.cuda.o: cuda_compile {source}",
        "build sum.so: link library.cuda.o",
        "default sum.so",
    )
    (cache / "build.ninja").write_text("\n".join((*rules, "")))
    subprocess.run(["ninja"], cwd=cache, check=True, capture_output=True)
    words = (sys.executable, "driver.py", str(cache / "sum.so"), "7")
    builder = scale.builder(HEADER, *words)
    assert (builder.system, builder.builder.more_trees) == ("ninja", (cache,))
    build = scale.rebuilt(builder, HEADER, tmp_path / "b")
    assert build.host_code.passed, build.host_code
    assert (scale.run(*builder.command_for(build)), scale.run(*words)) == ("18", "8")
    (scale.root / "setup.py").write_text(
        "import subprocess, sys\n"
        "assert sys.argv[1:] == ['build_ext', '--inplace']\n"
        "subprocess.run('hipcc -O1 -fPIC -shared src/library.hip -o sum.so'.split(), check=True)\n"
    )
    shutil.copy(cache / "sum.so", scale.root / "sum.so")
    builder = scale.builder(HEADER, sys.executable, "driver.py", "sum.so", "7")
    assert builder.system == "setup"
    build = scale.rebuilt(builder, HEADER, tmp_path / "c")
    assert build.host_code.passed, build.host_code
    assert scale.run(*builder.command_for(build)) == "18"
    (scale.root / "setup.py").unlink()


def test_the_compilations_of_a_build_are_read_from_what_it_prints() -> None:
    lines = (
        "[1/2] /opt/rocm/bin/hipcc -DX='a b' -c ../src/k.hip -o k.o",
        "make[1]: Entering directory '/there/sub'",
        "mkdir -p out && ccache hipcc -Iinclude -c k.hip",
        "make[1]: Leaving directory '/there/sub'",
        "cd /else && clang++-22 -x hip k.cpp ; echo k.cpp",
        "[ 50%] Building CXX object k.hip.o",
        "hipcc k.o -o app",
        "g++ -c main.cpp",
        "echo 'an open quote",
    )
    found = [(one.words, str(one.directory)) for one in compilations(lines, Path("/here"))]
    assert found == [
        (("/opt/rocm/bin/hipcc", "-DX=a b", "-c", "../src/k.hip", "-o", "k.o"), "/here"),
        (("hipcc", "-Iinclude", "-c", "k.hip"), "/there/sub"),
        (("clang++-22", "-x", "hip", "k.cpp"), "/else"),
    ]
