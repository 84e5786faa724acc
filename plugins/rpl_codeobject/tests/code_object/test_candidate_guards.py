"""Guards on real gfx942 code: this kernel changed, no other did, and nothing got worse."""

from __future__ import annotations

import attrs
import pytest

from rpl_codeobject.comparing import other_code_changes
from rpl_codeobject.occupancy import LaunchAssumption
from rpl_codeobject.reading import read_code_objects
from rpl_codeobject.reading.elf_file import open_elf
from rpl_gfx942.products import FACTS
from rpl_optimize.loop.binary_stage import LaunchLimit, guard_binary

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


def architecture_of(_name):
    return FACTS


def judge(before, after, *, kernel="first", must_change_loop=True):
    guards = guard_binary(
        before,
        after,
        kernel,
        launch=LaunchAssumption(256),
        architecture_of=architecture_of,
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
        assert (guard.passed, f"kinds of cooperation came or went: {kind}" in guard.reason) == (False, True)
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
        architecture_of=architecture_of,
        must_change_loop=False,
    )
    assert {g.guard: g.passed for g in guards}["binary-isa"] is None


def test_without_a_disassembler_nothing_is_claimed(build, monkeypatch):
    before, after = build("a"), build("b", pragma="#pragma unroll 4")
    monkeypatch.setattr("rpl_codeobject.disassembly.DISASSEMBLERS", ("no-such-tool",))
    guards = judge(before, after)
    assert guards["binary-isa"].passed is None
    assert guards["other-code"].passed is None


_SYNC = (
    '__builtin_amdgcn_fence(3, "workgroup"); __builtin_amdgcn_s_barrier(); '
    '__builtin_amdgcn_fence(2, "workgroup");'
)
#: ``B1``, ``B2``: barriers; ``HINT``: in front of the loop; ``N``: how often it runs.
_TILED = """
__global__ BOUND void first(float* out, const float* in, int n) {
  __attribute__((shared)) float tile[256];
  float sum = 0;
  HINT for (int i = 0; i < N; ++i) {
    B0 tile[LANE] = in[i * 256 + LANE];
    B1 sum += tile[255 - LANE] * tile[(LANE + 7) & 255];
    B2
  }
  out[LANE] = sum;
}
"""
_TREE = """
__global__ BOUND void first(float* out, const float* in, int n) {
  __attribute__((shared)) float tile[256];
  tile[LANE] = in[LANE];
  B1
  HINT for (int s = 128; s > 0; s >>= 1) { if (LANE < s) tile[LANE] += tile[LANE + s]; B2 }
  if (LANE == 0) out[0] = tile[0];
}
"""
_PLAIN = """
__global__ BOUND void first(float* out, const float* in, int n) {
  out[LANE] = in[LANE];
  B0 out[LANE + 1] += 3;
  B1 out[LANE + 2] += out[LANE + 5];
  B2 out[LANE + 3] += 1;
}
"""


@pytest.fixture
def made(compile_hip, rpl_require):
    rpl_require("llvm-objdump-22")

    def make(text, name, **parts):
        parts = {"B0": "", "B1": "SYNC", "B2": "SYNC", "HINT": "", "N": "n", "BOUND": "", **parts}
        for word, part in parts.items():
            text = text.replace(word, part) if word != "N" else text.replace("< N;", f"< {part};")
        return read_code_objects(compile_hip(text.replace("SYNC", _SYNC), name=f"{name}.hsaco"))

    return make


def cooperation(before, after, **options):
    (found,) = (
        guard
        for guard in guard_binary(
            before,
            after,
            "first",
            launch=LaunchAssumption(),
            architecture_of=architecture_of,
            must_change_loop=False,
            **options,
        )
        if guard.guard == "binary-cooperation"
    )
    return found


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        pytest.param(_TILED, {"B1": ""}, marks=pytest.mark.long),
        (_TILED, {"B2": ""}),
        (_TILED, {"B0": "SYNC", "B1": ""}),
        (_TILED, {"B1": "if (n > 7) { SYNC }"}),
        pytest.param(_TILED, {"B2": "if (i + 1 < n) break; SYNC"}, marks=pytest.mark.long),
        (_TREE, {"B2": ""}),
        pytest.param(_TREE, {"B1": ""}, marks=pytest.mark.long),
        (_PLAIN, {"B1": ""}),
        pytest.param(_PLAIN, {"B1": "", "B2": ""}, marks=pytest.mark.long),
        pytest.param(_PLAIN, {"B1": "", "B2": "if (n) { SYNC }"}, marks=pytest.mark.long),
    ],
)
def test_a_barrier_that_is_gone_from_the_machine_code_is_refused(made, text, changes):
    same = {"N": "6"} if "break" in str(changes) else {}
    guard = cooperation(made(text, "a", **same), made(text, "b", **same, **changes))
    assert guard.passed is False, changes


def _hinted(text, hint, rounds="n", *, quick=False):
    changes = {"HINT": f'_Pragma("{hint}")'}
    return pytest.param(text, changes, rounds, marks=() if quick else pytest.mark.long)


@pytest.mark.parametrize(
    ("text", "changes", "rounds"),
    [
        _hinted(_TILED, "unroll 4", "21", quick=True),
        _hinted(_TREE, "nounroll", quick=True),
        *(_hinted(_TILED, f"unroll {factor}", rounds) for factor in (2, 4, 8) for rounds in ("n", "21", "8")),
        *(_hinted(_TREE, hint) for hint in ("unroll 2", "unroll 4", "unroll 8", "unroll")),
    ],
)
def test_unrolled_loops_with_barriers_pass_both_ways(made, text, changes, rounds):
    """Unrolled more than before, or less."""
    plain, unrolled = made(text, "a", N=rounds), made(text, "b", N=rounds, **changes)
    for before, after in ((plain, unrolled), (unrolled, plain)):
        guard = cooperation(before, after)
        assert guard.passed, guard.reason


@pytest.mark.parametrize(("threads", "passed"), [(64, True), (128, False)])
def test_a_workgroup_of_one_wave_may_lose_its_barriers_and_no_other(made, threads, passed):
    """A declared limit is no reason to look away."""
    bound = f"__attribute__((amdgpu_flat_work_group_size(1, {threads})))"
    limit = LaunchLimit(threads, 64)
    before = made(_TILED, "a")
    assert cooperation(before, made(_TILED, "b", BOUND=bound), limit=limit).passed, "the compiler may"
    assert cooperation(before, made(_TILED, "c", BOUND=bound, B2=""), limit=limit).passed is passed


def test_a_fence_that_is_gone_is_refused(made):
    fenced = made(_PLAIN, "a", B0='__builtin_amdgcn_fence(5, "agent");')
    guard = cooperation(fenced, made(_PLAIN, "b"))
    assert (guard.passed, "fence" in guard.reason) == (False, True)


def test_bounds_that_end_spills_and_lose_waves_are_for_the_measurement(made):
    """Occupancy 4 -> 2 refused it unmeasured, and it ended hundreds of spills."""
    text = """
    __global__ BOUND void first(float* out, const float* in, int n) {
      float acc[200];
      for (int k = 0; k < 200; ++k) acc[k] = in[k * 1024 + LANE];
      for (int i = 0; i < n; ++i)
        for (int k = 0; k < 200; ++k) acc[k] = acc[k] * acc[(k + 1) % 200] + in[i * 200 + k + LANE];
      for (int k = 0; k < 200; ++k) out[k * 1024 + LANE] = acc[k];
    }"""
    bound = "__attribute__((amdgpu_flat_work_group_size(1, 256)))"
    guards = {
        measured: guard_binary(
            made(text, "a"),
            made(text, "b", BOUND=bound),
            "first",
            launch=LaunchAssumption(256),
            architecture_of=architecture_of,
            must_change_loop=False,
            measured=measured,
            limit=LaunchLimit(256, 256),
        )
        for measured in (True, False)
    }
    asked = {one.guard: one for one in guards[True]}["binary-occupancy"]
    assert asked.passed
    assert "occupancy fell" in asked.reason
    assert asked.reason.endswith("for the measurement to weigh")
    assert all(one.passed for one in guards[True]), guards[True]
    assert not {one.guard: one for one in guards[False]}["binary-occupancy"].passed
