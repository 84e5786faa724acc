"""Loops of real gfx942 code, and whether an edit reached them."""

from __future__ import annotations

import pytest

from rpl_codeobject.disassembly import (
    Instruction,
    IsaVerdict,
    compare_instructions,
    disassemble,
    find_machine_loops,
)
from rpl_codeobject.kernel_code import CodeObject
from rpl_codeobject.reading import read_code_objects
from rpl_core.errors import BadDataError

_SUM = """
extern "C" __global__ void total(float* out, const float* in, int n) {
  float sum = 0.0f;
  PRAGMA
  for (int i = 0; i < n; ++i) sum += in[i * 64 + LANE];
  out[LANE] = sum;
}
"""


def _instructions(compile_hip, pragma: str, name: str, text: str = _SUM):
    (code_object,) = read_code_objects(compile_hip(text.replace("PRAGMA", pragma), name=name))
    return disassemble(code_object)["total"]


@pytest.mark.clang
def test_the_loop_of_a_rolled_sum_has_one_load_and_one_add(compile_hip):
    instructions = _instructions(compile_hip, "#pragma nounroll", "a.hsaco")
    (loop,) = find_machine_loops(instructions)
    assert loop.counts["global_load_dword"] == 1
    assert loop.counts["v_add_f32_e32"] == 1
    assert instructions[-1].mnemonic == "s_endpgm"


@pytest.mark.clang
def test_unrolling_by_four_shows_as_four_loads_in_a_loop(compile_hip):
    before = _instructions(compile_hip, "#pragma nounroll", "a.hsaco")
    after = _instructions(compile_hip, "#pragma unroll 4", "b.hsaco")
    found = compare_instructions(before, after)
    assert found.verdict is IsaVerdict.LOOPS_CHANGED
    assert 4 in [loop.counts["global_load_dword"] for loop in found.after]
    assert "became loops of" in found.sentence()


@pytest.mark.clang
def test_the_same_source_twice_is_identical(compile_hip):
    first = _instructions(compile_hip, "", "a.hsaco")
    assert (
        compare_instructions(first, _instructions(compile_hip, "", "b.hsaco")).verdict is IsaVerdict.IDENTICAL
    )


@pytest.mark.clang
def test_a_change_behind_the_loop_is_not_a_changed_loop(compile_hip):
    before = _instructions(compile_hip, "#pragma nounroll", "a.hsaco")
    text = _SUM.replace("= sum;", "= sum * 3.0f;")
    after = _instructions(compile_hip, "#pragma nounroll", "b.hsaco", text)
    assert compare_instructions(before, after).verdict is IsaVerdict.OUTSIDE_LOOPS


@pytest.mark.parametrize(
    ("inside", "behind", "verdict"),
    [
        ("v_add_f32_e32", "s_endpgm", IsaVerdict.IDENTICAL),
        ("v_add_f32_e32", "s_nop", IsaVerdict.OUTSIDE_LOOPS),
        ("v_mul_f32_e32", "s_endpgm", IsaVerdict.LOOPS_CHANGED),
    ],
)
def test_the_verdict_follows_from_the_mnemonics_of_the_loops(inside, behind, verdict):
    def code(first, last):
        branch = Instruction(4, "s_cbranch_scc1", "", 0)
        return [Instruction(0, first, "v0"), branch, Instruction(8, last, "")]

    assert compare_instructions(code("v_add_f32_e32", "s_endpgm"), code(inside, behind)).verdict is verdict


@pytest.mark.parametrize(
    ("says", "cause"),
    [("echo first >&2; echo 'no such target' >&2;", "no such target"), ("", "it gave no reason")],
)
def test_the_last_line_of_a_disassembler_that_fails_is_the_cause(tmp_path, says, cause):
    tool = tmp_path / "objdump"
    tool.write_text(f"#!/bin/sh\n{says} exit 1\n")
    tool.chmod(0o700)
    empty = CodeObject(target="amdgcn-amd-amdhsa--gfx942", metadata_version=(1, 2), kernels=(), elf=b"")
    with pytest.raises(BadDataError, match="refused the code object") as caught:
        disassemble(empty, tool)
    assert caught.value.cause == cause


def test_nested_backward_branches_give_nested_loops():
    code = [
        Instruction(0, "s_mov_b32", ""),
        Instruction(4, "v_add_f32_e32", ""),
        Instruction(8, "s_cbranch_scc1", "", 4),
        Instruction(12, "s_cbranch_scc0", "", 0),
        Instruction(16, "s_branch", "", 24),
        Instruction(20, "s_nop", ""),
        Instruction(24, "s_endpgm", ""),
    ]
    assert [(loop.head, loop.end) for loop in find_machine_loops(code)] == [(0, 12), (4, 8)]


def test_a_branch_to_itself_is_a_loop_of_one_instruction_and_one_forward_is_none():
    code = [
        Instruction(0, "s_branch", "", 4),
        Instruction(4, "s_cbranch_scc1", "", 4),
        Instruction(8, "s_endpgm", ""),
    ]
    (loop,) = find_machine_loops(code)
    assert (loop.head, loop.end, loop.shape) == (4, 4, ("s_cbranch_scc1",))


@pytest.mark.clang
def test_a_disassembler_that_crashes_is_named(compile_hip, tmp_path):
    tool = tmp_path / "objdump"
    tool.write_text("#!/bin/sh\necho stack frame of mine >&2\nkill -SEGV $$\n")
    tool.chmod(0o755)
    (code_object,) = read_code_objects(compile_hip(_SUM.replace("PRAGMA", ""), name="a.hsaco"))
    with pytest.raises(BadDataError, match="crashed") as caught:
        disassemble(code_object, tool=tool)
    assert "frame" not in str(caught.value.cause)
