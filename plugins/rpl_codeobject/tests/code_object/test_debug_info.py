"""Kernels are found in the files that the compiler names, whatever their debug information holds."""

from __future__ import annotations

import random
import time

import pytest

from rpl_codeobject.kernel_code import CodeObject
from rpl_codeobject.reading import debug_info, read_code_objects
from rpl_codeobject.reading.debug_info import kernel_sources, unit_sources

pytestmark = pytest.mark.clang
_SOURCE = """
namespace work {
template <class T> __global__
void scale(T* out) { out[LANE] *= 2; }
}
template __global__ void work::scale<float>(float*);
#include "more/other.h"
"""
_OTHER = 'extern "C" __global__ void other(int* out) {\n  out[LANE] = 7;\n}\n'
#: The first instruction of the kernel belongs to a function of another file.
_INLINED = """
#include "more/first.h"
extern "C" __global__ void outer(int* out) { first(out); }
"""
_FIRST = "__attribute__((device)) inline void first(int* out) { out[LANE] = 7; }\n"


@pytest.fixture
def compiled(compile_hip, tmp_path):
    """``compiled("-g")``: the code objects of a source and a header with a kernel each."""

    def build(*flags: str) -> tuple[CodeObject, ...]:
        (tmp_path / "more").mkdir(exist_ok=True)
        (tmp_path / "more" / "other.h").write_text(_OTHER)
        return read_code_objects(compile_hip(_SOURCE, *flags, name="two.hsaco"))

    return build


@pytest.mark.parametrize(
    "flags", [("-g",), ("-gdwarf-4",), ("-gline-tables-only",), ("-g", "-gz"), ("-g", "-O0")]
)
def test_each_kernel_has_its_own_file_and_line(compiled, tmp_path, flags):
    found = kernel_sources(compiled(*flags))
    assert set(found) == {"_ZN4work5scaleIfEEvPT_.kd", "other.kd"}
    text = (tmp_path / "two.hsaco.hip").read_text().splitlines()
    scale = found["_ZN4work5scaleIfEEvPT_.kd"]
    assert scale.path.resolve() == (tmp_path / "two.hsaco.hip").resolve()
    assert text[scale.line - 1].startswith("void scale(T* out)")
    own = 2 if "-gline-tables-only" in flags else 1  # the line of the first instruction
    assert found["other.kd"].path.resolve() == (tmp_path / "more" / "other.h").resolve()
    assert found["other.kd"].line == own


def test_what_is_inlined_does_not_hide_where_the_kernel_is(compile_hip, tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "first.h").write_text(_FIRST)
    codes = read_code_objects(compile_hip(_INLINED, "-g", name="outer.hsaco"))
    assert kernel_sources(codes)["outer.kd"].path.name == "outer.hsaco.hip"


def test_without_debug_information_nothing_is_found_and_nothing_is_started(compiled, monkeypatch):
    codes = compiled()
    monkeypatch.setattr(debug_info.subprocess, "run", None)
    assert kernel_sources(codes) == {}


def test_the_units_of_a_host_program_are_found(tmp_path, rpl_require):
    import subprocess

    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    command = [rpl_require("clang-22"), "-g", "-c", "main.c", "-o", "main.o"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert unit_sources(tmp_path / "main.o") == (tmp_path / "main.c",)
    assert unit_sources(tmp_path / "absent") == ()


def _changed(code: CodeObject, data: bytes) -> CodeObject:
    import attrs

    return attrs.evolve(code, elf=data)


def test_a_line_table_that_counts_to_the_end_of_numbers_is_given_up(compiled, monkeypatch):
    (code,) = compiled("-g")
    section = code.elf.index(b"\1\1\1\0\0\0\1")  # the end of standard_opcode_lengths, DWARF 5
    at = section + 10  # directory_entry_format_count
    # No fields per directory, and 2**63 directories.
    data = code.elf[:at] + b"\0" + b"\xff" * 8 + b"\x7f" + code.elf[at + 10 :]
    begin = time.monotonic()
    monkeypatch.setattr(debug_info, "_TIME_LIMIT_S", 1.5)
    assert kernel_sources([_changed(code, data)]) == {}
    assert 1.5 <= time.monotonic() - begin < 10, "it was to run into the limit"


def test_damage_never_ends_in_an_exception(compiled):
    (code,) = compiled("-g")
    begin = code.elf.index(b"\0clang") if b"\0clang" in code.elf else len(code.elf) // 2
    order = random.Random(7)
    for _ in range(8):
        data = bytearray(code.elf)
        for _ in range(40):
            data[order.randrange(begin, len(data))] = order.randrange(256)
        places = kernel_sources([_changed(code, bytes(data))])
        assert all(isinstance(place.line, int) for place in places.values())
