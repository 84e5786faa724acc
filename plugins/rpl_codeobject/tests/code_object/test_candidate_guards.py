"""Guards on real gfx942 code: this kernel changed, no other did, and nothing got worse."""

from __future__ import annotations

import attrs
import pytest

from rpl_analysis.occupancy.compiled import compiled_occupancy
from rpl_codeobject.comparing.other_code import other_code_changes
from rpl_codeobject.occupancy import LaunchAssumption
from rpl_codeobject.reading.elf_file import open_elf
from rpl_codeobject.reading.read import read_code_objects
from rpl_gfx942.products import FACTS
from rpl_optimize.loop.binary_stage import guard_binary

pytestmark = pytest.mark.clang

SOURCE = """
__constant__ float table[64];
__global__ void first(const float* in, float* out, int n) {
  float sum = 0;
  PRAGMA
  for (int i = 0; i < n; ++i) sum += in[i * 64 + LANE] * table[i & 63];
  out[LANE] = sum;
}
__attribute__((device)) VALUE;
__global__ void second(const float* in, float* out) { out[LANE] = in[LANE] * table[LANE] * value SECOND; }
"""


@pytest.fixture
def build(compile_hip, rpl_require):
    rpl_require("llvm-objdump-22")

    def make(name, *, pragma="", second="", value="float value = 2", kernel="second"):
        text = SOURCE.replace("PRAGMA", pragma).replace("SECOND", second).replace("VALUE", value)
        text = text.replace("void second", f"void {kernel}")
        text = "#define __constant__ __attribute__((constant))\n" + text
        return read_code_objects(compile_hip(text, name=f"{name}.hsaco"))

    return make


def occupancies(launches):
    return {one: compiled_occupancy(one, FACTS) for one in launches}


def judge(before, after, *, kernel="first", must_change_loop=True):
    guards = guard_binary(
        before,
        after,
        kernel,
        launch=LaunchAssumption(256),
        occupancy_of=occupancies,
        must_change_loop=must_change_loop,
    )
    return {guard.guard: guard for guard in guards}


def test_an_unrolled_loop_passes_and_its_neighbour_counts_as_unchanged(build):
    guards = judge(build("a"), build("b", pragma="#pragma unroll 4"))
    assert {name for name, guard in guards.items() if not guard.passed} <= {"binary-occupancy"}
    assert guards["other-code"].passed, "distances to data move, the code does not"


def test_an_edit_without_effect_is_refused(build):
    guards = judge(build("a"), build("b"))
    assert guards["binary-isa"].passed is False
    assert "changed nothing" in guards["binary-isa"].reason
    assert judge(build("a"), build("b"), must_change_loop=False)["binary-isa"].passed is False


@pytest.mark.parametrize(
    ("added", "kind"),
    [
        ("__builtin_amdgcn_s_barrier();", "barrier"),
        ("__hip_atomic_fetch_add((int*)out, 1, __ATOMIC_RELAXED, 4);", "atomic on memory"),
    ],
)
def test_a_kind_of_cooperation_that_came_or_went_is_refused(build, added, kind):
    with_it = build("b", pragma=f"{added}\n#pragma unroll 4")
    for before, after in ((build("a"), with_it), (with_it, build("a"))):
        guard = judge(before, after)["binary-cooperation"]
        assert (guard.passed, guard.reason) == (False, f"kinds of cooperation came or went: {kind}")
    assert judge(with_it, with_it)["binary-cooperation"].passed


def test_another_kernel_that_changed_is_refused(build):
    guards = judge(build("a"), build("b", pragma="#pragma unroll 4", second="+ 1"))
    assert guards["other-code"].passed is False
    assert "second" in guards["other-code"].reason


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"value": "float value = 3"}, "the initial value of value changed"),
        ({"value": "float more, value = 2"}, None),
        ({"kernel": "renamed"}, "_Z6secondPKfPf is missing; _Z6secondPKfPf.kd is missing"),
        ({"second": "+ in[LANE + 1]"}, "the code of _Z6secondPKfPf changed"),
    ],
)
def test_what_the_host_looks_up_is_there_with_the_same_value(build, changes, said):
    """A renamed kernel compiles and links without an error: only the launch fails."""
    guard = judge(build("a"), build("b", pragma="#pragma unroll 4", **changes))["other-code"]
    assert (guard.passed, guard.reason) == (said is None, said or "everything but the kernel is as before")


@pytest.mark.parametrize(("byte", "said"), [(16, ()), (48, ("the descriptor of _Z6secondPKfPf changed",))])
def test_a_descriptor_may_only_tell_another_place_of_the_code(build, byte, said):
    (code,) = build("a")
    elf = open_elf(code.elf)
    (descriptor,) = elf.get_section_by_name(".dynsym").get_symbol_by_name("_Z6secondPKfPf.kd")
    section = elf.get_section(descriptor["st_shndx"])
    place = section["sh_offset"] + descriptor["st_value"] - section["sh_addr"] + byte
    changed = bytearray(code.elf)
    changed[place] ^= 1
    after = attrs.evolve(code, elf=bytes(changed))
    assert other_code_changes((code,), (after,), lambda name: False) == said


def test_a_kernel_that_is_in_no_build_is_not_called_changed(build):
    guards = guard_binary(
        build("a"),
        build("b"),
        "third",
        launch=LaunchAssumption(),
        occupancy_of=occupancies,
        must_change_loop=False,
    )
    assert {g.guard: g.passed for g in guards}["binary-isa"] is None


def test_without_a_disassembler_nothing_is_claimed(build, monkeypatch):
    before, after = build("a"), build("b", pragma="#pragma unroll 4")
    monkeypatch.setattr("rpl_codeobject.instructions.disassembly.DISASSEMBLERS", ("no-such-tool",))
    guards = judge(before, after)
    assert guards["binary-isa"].passed is None
    assert guards["other-code"].passed is None
