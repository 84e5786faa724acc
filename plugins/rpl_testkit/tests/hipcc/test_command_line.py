"""The stand-in takes hipcc's command lines: objects, several sources, errors and what it does not do."""

from __future__ import annotations

import subprocess

import pytest

from rpl_codeobject.reading import read_code_objects

pytestmark = pytest.mark.clang

MAIN = """#include <hip/hip_runtime.h>
#include <cstdio>
#include "shared.h"
__global__ void first(int* out) { *out = VALUE; }
int main() {
  int* out;
  (void)hipMalloc(&out, sizeof(int));
  first<<<1, 1>>>(out);
  std::printf("%d %d\\n", *out, second());
}
"""
OTHER = """#include <hip/hip_runtime.h>
__global__ void other(int* out) { *out = 2; }
int second() {
  int* out;
  (void)hipMalloc(&out, sizeof(int));
  other<<<1, 1>>>(out);
  return *out;
}
"""


@pytest.fixture
def two(rpl_closed_loop_bench):
    folder = rpl_closed_loop_bench.folder
    (folder / "include").mkdir()
    (folder / "include" / "shared.h").write_text("int second();\n")
    (folder / "main.hip").write_text(MAIN)
    (folder / "other.cpp").write_text(OTHER)
    return rpl_closed_loop_bench


OPTIONS = ("-Iinclude", "-D", "VALUE=5", "-std=c++14", "-O2")


def ran(bench, program: str) -> str:
    done = subprocess.run([bench.folder / program], capture_output=True, text=True, check=True)
    return done.stdout


def entries(bench, program: str) -> list[str]:
    return [k.name for code in read_code_objects(bench.folder / program) for k in code.kernels]


def test_objects_are_linked_to_one_program(two) -> None:
    assert two.hipcc(*OPTIONS, "-c", "main.hip", "other.cpp").returncode == 0
    assert entries(two, "main.o") == ["_Z5firstPi"]
    assert two.hipcc("main.o", "other.o", "-lm", "-o", "program").returncode == 0
    assert ran(two, "program") == "5 2\n"
    assert sorted(entries(two, "program")) == ["_Z5firstPi", "_Z5otherPi"]


def test_several_sources_at_once_and_a_dependency_file(two) -> None:
    done = two.hipcc(*OPTIONS, "-MD", "-MF", "deps.d", "-c", "main.hip", "-o", "m.o")
    assert done.returncode == 0, done.stderr
    assert "include/shared.h" in (two.folder / "deps.d").read_text()
    assert two.hipcc(*OPTIONS, "main.hip", "other.cpp").returncode == 0
    assert ran(two, "a.out") == "5 2\n"


def test_device_code_alone(two) -> None:
    assert two.hipcc("--genco", "--offload-arch=gfx90a", "other.cpp", "-o", "other.co").returncode == 0
    (code,) = read_code_objects(two.folder / "other.co")
    assert code.target == "amdgcn-amd-amdhsa--gfx90a"


def test_a_mistake_is_reported_as_clang_does(two) -> None:
    (two.folder / "other.cpp").write_text(OTHER.replace("= 2", "= 2 +"))
    done = two.hipcc("-c", "other.cpp", "-o", "other.o")
    assert done.returncode == 1
    assert "other.cpp:2:45: error: expected expression" in done.stderr
    assert done.stderr.count("error:") == 1
    assert not (two.folder / "other.o").exists()


def test_a_mistake_on_the_host_names_its_line(two) -> None:
    (two.folder / "other.cpp").write_text(OTHER.replace("return *out", "return no_such_thing"))
    done = two.hipcc("-c", "other.cpp")
    assert done.returncode == 1
    assert "other.cpp:7:" in done.stderr


def test_a_missing_function_fails_at_the_end(two) -> None:
    done = two.hipcc(*OPTIONS, "main.hip", "-o", "program")
    assert done.returncode == 1
    assert "second()" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no input files"),
        (("absent.hip",), "no such file or directory: 'absent.hip'"),
        (("-S", "main.hip"), "-S is not part of rpl's stand-in"),
        (("-c", "main.hip", "other.cpp", "-o", "x.o"), "multiple output files"),
    ],
)
def test_what_can_not_be_done(two, arguments, message) -> None:
    done = two.hipcc(*arguments)
    assert done.returncode == 1
    assert message in done.stderr


def test_the_version_says_what_it_is(two) -> None:
    text = two.hipcc("--version").stdout
    assert text.startswith("HIP version: 7.2")
    assert "synthetic" in text
    assert "clang version 22" in text
