"""A candidate's host code never runs: it is not compiled, or one bit of difference refuses the candidate."""

from __future__ import annotations

import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from rpl_codeobject.reading.elf_file import open_elf, section_bytes
from rpl_optimize.build.build_run import BuildRun
from rpl_optimize.build.host_code import SeparateCompile
from rpl_optimize.interfaces.builder import Build, Builder
from rpl_optimize.source_meaning.front_end import line_directive

pytestmark = pytest.mark.clang

#: Ends the kernel; macros of system headers hide every word that a list could forbid.
HOSTILE = b"__END_DECLS; struct E { E() { __CONCAT(put, s)(__STRING(the host ran it)); } } e; __BEGIN_DECLS"
FASTER = (b"FACTOR + LOCAL", b"LOCAL + FACTOR + 10")
TEMPLATE = "hipcc -O1 -g -Iinclude {source} -o {output}"


def built(project, place: Path, *, whole: bool = True, more: bytes = b"", numbered: bool = False, **options):
    """Another kernel, with ``more`` at its end; its program and what the host prints.

    ``numbered``: the lines behind it keep their numbers.
    """
    if not options:
        (project.root / "Makefile").unlink(missing_ok=True)  # or make would be asked
    original = project.whole if whole else project.source.read_bytes()
    candidate = original.replace(*FASTER).replace(b"+ 10; }", b"+ 10; " + more + b"}")
    if numbered:
        end = original.index(b"LOCAL; }") + len(b"LOCAL; }")
        behind = len(original) - end
        candidate = candidate[:-behind] + line_directive(original, end) + candidate[-behind:]
    build = project.builder(architecture="gfx942", **options).build(candidate, place, original)
    assert build.host_code is not None, build
    return build, project.printed((str(build.binary),))


@pytest.mark.parametrize("way", ["compiler", pytest.param("database", marks=pytest.mark.long)])
def test_host_code_of_a_candidate_is_never_compiled(hipcc, project, tmp_path, way):
    if way == "database":
        project.write_database(project.root / "compile_commands.json")
    build, printed = built(project, tmp_path / "b", whole=way == "compiler", more=HOSTILE)
    assert printed == "13", "the kernel is the candidate's"
    # Nothing of it ran; but the user would compile it if it were accepted.
    assert (build.host_code.guard, build.host_code.passed) == ("host-code", False), build.host_code
    for numbered in (True, False):
        place = tmp_path / f"c{numbered}"
        build, printed = built(project, place, whole=way == "compiler", more=b"\n\n", numbered=numbered)
        assert (printed, build.host_code.passed) == ("13", numbered), build.host_code
    assert "moves lines whose numbers are in the host's code" in build.host_code.reason


@pytest.mark.parametrize(
    ("way", "more", "numbered", "passed"),
    [
        ("template", b"\n\n", True, True),
        ("template", b"\n\n", False, False),
        ("template", HOSTILE, False, False),
        ("project", b"} __device__ int more; inline void f() {", False, False),
    ],
)
def test_a_command_of_the_user_is_looked_at_instead(
    hipcc, project, tmp_path, rpl_require, way, more, numbered, passed
):
    rpl_require("make")
    command = TEMPLATE if way == "template" else "make app"
    options = {"more": more, "numbered": numbered, "build_command": command}
    build, printed = built(project, tmp_path / "b", whole=way == "template", **options)
    assert (build.host_code.guard, build.host_code.passed) == ("host-code", passed), build.host_code
    assert printed == ("the host ran it\n13" if more == HOSTILE else "13"), "the guard is what keeps it away"


def test_files_that_include_the_edited_one_count(hipcc, project, tmp_path, rpl_require):
    rpl_require("make")
    header = project.root / "src" / "local.h"
    builder = project.builder(build_command="make app", source=header)
    local = header.read_bytes()
    for text, passed in ((local.replace(b"1", b"2"), True), (local + b"int host = 1;\n", False)):
        build = builder.build(text, tmp_path / f"{passed}", local)
        assert build.host_code.passed is passed, build.host_code
    assert "scale.hip" in build.host_code.reason


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("sh -c 'cp $0 $1' ready {output} {source}", "no compilation of scale.hip for the host was seen"),
        ("hipcc -save-temps=obj -Iinclude {source} -o {output}", "is preprocessed in a step of its own"),
    ],
)
def test_where_nobody_can_tell_the_candidate_is_refused(hipcc, project, tmp_path, command, said):
    ready = project.builder(build_command=TEMPLATE).build(project.whole, tmp_path / "ready")
    command = command.replace("ready", str(ready.binary)).replace("$1'", "$1'")
    build = project.builder(build_command=command).build(
        project.whole.replace(*FASTER), tmp_path / "b", project.whole
    )
    assert build.host_code.passed is False
    assert said in build.host_code.reason


def test_a_header_that_another_compiler_reads_refuses(hipcc, project, tmp_path, rpl_require):
    rpl_require("make")
    rpl_require("g++")
    (project.root / "src" / "main.cpp").write_text(
        '#include "local.h"\n' + (project.root / "src" / "main.cpp").read_text()
    )
    makefile = (project.root / "Makefile").read_text()
    for flags in ("", "-MD"):
        (project.root / "Makefile").write_text(makefile.replace("$(CXX) -c -O1 $<", f"g++ -c {flags} $<"))
        header = project.root / "src" / "local.h"
        builder = project.builder(build_command="make app", source=header)
        changed = header.read_bytes().replace(b"1.0f", b"2.0f")
        build = builder.build(changed, tmp_path / f"b{flags}", header.read_bytes())
        assert build.host_code.reason == "another compiler than clang reads local.h as well"


def test_a_strangers_build_that_says_nothing_is_refused(project, tmp_path):
    class Silent(Builder):
        summary = "copies a program"

        def build(self, text: bytes, directory: Path) -> Build:
            directory.mkdir()
            (directory / "made").write_bytes(b"")
            return Build(directory / "made", (), 0.5, directory / "log")

        def command_for(self, build: Build) -> tuple[str, ...]:
            return (str(build.binary),)

    from rpl_optimize.build.builders import ProgramBuilder

    verdict = ProgramBuilder("p", "silent", Silent())._host_code(Silent().build(b"", tmp_path / "b"))
    assert verdict.passed is False
    assert "silent" in verdict.reason


RELOCATABLE = """
#define __global__ __attribute__((global))
typedef struct {{ unsigned x, y, z; }} dim3;
extern "C" int __hipPushCallConfiguration(dim3, dim3, unsigned long = 0, void* = 0);
extern "C" int __hipPopCallConfiguration(dim3*, dim3*, unsigned long*, void*);
extern "C" int hipLaunchKernel(const void*, dim3, dim3, void**, unsigned long, void*);
__global__ void k(float* x) {{ *x += {by}; }}
void run(float* x) {{ k<<<dim3{{1, 1, 1}}, dim3{{1, 1, 1}}>>>(x); }}
{more}
"""


@pytest.mark.parametrize("options", [(), ("-fgpu-rdc",), ("-fgpu-rdc", "--offload-arch=gfx90a")])
def test_the_parts_are_joined_to_what_one_compilation_gives(tmp_path, rpl_require, options):
    """With real clang, for relocatable device code and several architectures too."""
    clang = str(rpl_require("clang++-22"))
    base = (clang, "-x", "hip", "--offload-arch=gfx942", "-nogpuinc", "-nogpulib", "-O2", *options, "-cuid=1")
    original, candidate = tmp_path / "original.hip", tmp_path / "candidate.hip"
    original.write_text(RELOCATABLE.format(by=1, more=""))
    candidate.write_text(RELOCATABLE.format(by=2, more="struct E { E(); } e;"))

    def command(source: Path, target: Path) -> tuple[str, ...]:
        return (*base, "-c", str(source), "-o", str(target))

    plain = tmp_path / "plain.o"
    subprocess.run(command(original, plain), check=True)
    with closing(BuildRun(tmp_path / "b", 60.0)) as run:
        compiling = SeparateCompile(command, tmp_path, {"PATH": "/usr/bin:/bin"}, "1")
        same = compiling.compile(run, original, original, run.directory / "same.o")
        mixed = compiling.compile(run, candidate, original, run.directory / "mixed.o")
    assert same.read_bytes() == plain.read_bytes()
    before, after = _sections(same), _sections(mixed)
    changed = {name for name in before if before[name] != after.get(name)}
    device = {name for name in before if "hip-amdgcn" in name or name == ".hip_fatbin"}
    assert changed
    assert changed <= device


def _sections(path: Path) -> dict[str, bytes]:
    return {s.name: section_bytes(s) for s in open_elf(path.read_bytes()).iter_sections()}
