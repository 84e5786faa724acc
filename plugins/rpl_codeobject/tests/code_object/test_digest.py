"""The hash over device code: the same for the same code, another for any other."""

from __future__ import annotations

import struct

import pytest

from rpl_codeobject.reading import code_objects_from, read_code_objects
from rpl_codeobject.reading.elf_file import code_digest
from rpl_core.errors import RplError

pytestmark = pytest.mark.clang
_SOURCE = """
__attribute__((device)) float table[4] = {1, 2, 3, 4};
extern "C" __global__ void scale(float* out, int n) { out[LANE] *= table[n & 3]; }
"""


def digest(path) -> str:
    return code_digest(read_code_objects(path))


def test_place_and_debug_information_do_not_matter(compile_hip):
    one, other, debug = (
        compile_hip(_SOURCE, *flags, name=name)
        for name, flags in (("a", ()), ("another-name", ()), ("c", ("-g", "-Wl,--build-id")))
    )
    assert one.read_bytes() != other.read_bytes(), "the unit's id holds the path"
    assert digest(one) == digest(other) == digest(debug)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("*= table", "+= table"),  # instructions
        ("{1, 2, 3, 4}", "{1, 2, 3, 5}"),  # initial data
        ("int n)", "long n)"),  # arguments, which only the note tells
        ("table", "named"),  # symbols that the host finds by name
        (
            "__global__ void",
            "__global__ __attribute__((amdgpu_flat_work_group_size(1, 64))) void",
        ),  # launch bounds, in the note
    ],
)
def test_every_difference_that_can_be_executed_matters(compile_hip, old, new):
    before, after = compile_hip(_SOURCE, name="a"), compile_hip(_SOURCE.replace(old, new), name="b")
    assert digest(before) != digest(after)


def test_order_and_number_of_code_objects_matter(compile_hip):
    one = read_code_objects(compile_hip(_SOURCE, name="a"))
    other = read_code_objects(compile_hip(_SOURCE.replace("1, 2", "2, 1"), name="b"))
    digests = {code_digest(codes) for codes in ((), one, other, one + other, other + one, one + one)}
    assert len(digests) == 6


def test_a_damaged_code_object_is_an_expected_error(compile_hip):
    data = compile_hip(_SOURCE).read_bytes()
    for position in range(0, len(data), 37):
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        try:
            code_digest(code_objects_from(bytes(damaged), "damaged"))
        except RplError:
            continue


def test_a_section_that_claims_to_fill_the_memory_is_not_believed(compile_hip):
    data = bytearray(compile_hip(_SOURCE).read_bytes())
    (table,) = struct.unpack_from("<Q", data, 0x28)
    (count,) = struct.unpack_from("<H", data, 0x3C)
    claimed = 0
    for header in range(table, table + 64 * count, 64):
        (kind,) = struct.unpack_from("<I", data, header + 4)
        if kind == 8:  # SHT_NOBITS
            struct.pack_into("<Q", data, header + 32, 1 << 50)
            claimed += 1
    assert claimed
    assert code_digest(code_objects_from(bytes(data), "claims"))
