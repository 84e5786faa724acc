"""Counts per instruction become heat: sums over launches, by source line, in documents and reports."""

from __future__ import annotations

import json
import subprocess

import pytest

from rpl_core.errors import BadDataError
from rpl_core.interfaces.reader import InputSet
from rpl_emu.heat import SUFFIX, HeatReader
from rpl_emu.heat_count import write_heat
from rpl_emu.rocpd_file import EmulatedLaunch
from rpl_testkit.requirements import require

SOURCE = """\
__attribute__((amdgpu_kernel)) void twice(float* values) {
  float* mine = values + __builtin_amdgcn_workitem_id_x();
  *mine = *mine * 2;
}
"""


def launched(*places, waves=2):
    facts = {"symbol": "twice", "kernel": "twice(float*)", "waves": waves}
    return EmulatedLaunch({**facts, "places": [dict(zip(_PLACE, one, strict=True)) for one in places]}, 0, 1)


_PLACE = ("at", "opcode", "executed", "lanes")


@pytest.fixture
def heat_of(tmp_path):
    """``heat_of(launches, command)``: the one kernel of the file that is written."""

    def make(launches, command=()):
        path = tmp_path / f"7{SUFFIX}"
        write_heat(path, launches, command)
        (kernel,) = json.loads(path.read_text())["kernels"]
        return kernel

    return make


def test_launches_add_up_and_only_vector_instructions_have_lanes(heat_of):
    loop = ("0x8", "v_add_f32", 10, 320)
    found = heat_of([launched(("0x4", "s_nop", 2, 128), loop), launched(loop, waves=1)])
    assert (found["launches"], found["waves"], found["executed"]) == (2, 3, 22)
    assert (found["vector"], found["lanes"]) == (20, 640)
    assert [(one["address"], one["executed"], one["lanes"]) for one in found["places"]] == [
        (8, 20, 640),
        (4, 2, None),
    ]
    assert found["lines"] == []
    assert found["lines_reason"] == "no file of the command holds this kernel's code object"


@pytest.mark.clang
def test_lines_come_from_the_code_object_in_a_file_of_the_command(heat_of, tmp_path):
    require("ld.lld-22")
    (tmp_path / "twice.c").write_text(SOURCE)
    target = ["--target=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-nogpulib", "-O1"]
    for name, *more in (("lines", "-g"), ("bare",)):
        command = [require("clang-22"), *target, *more, "twice.c", "-o", f"{name}.hsaco"]
        subprocess.run(command, cwd=tmp_path, check=True)
    code = tmp_path / "lines.hsaco"
    # Every word of the code, wherever its kernel begins: those between instructions have their line, too.
    places = [(hex(at), "v_mul_f32", 1, 64) for at in range(0, 0x4000, 4)]
    found = heat_of([launched(*places)], ["python", str(tmp_path / "absent"), str(code), "--fast"])
    assert {one["source"] for one in found["lines"]} == {str(tmp_path / "twice.c")}
    assert {3, 4} <= {one["line"] for one in found["lines"]} <= {1, 2, 3, 4}
    assert found["lines_reason"] is None
    without = heat_of([launched(*places)], [str(tmp_path / "bare.hsaco")])
    assert without["lines_reason"] == "the code object has no line tables (compile with -g)"


def test_a_file_that_is_no_heat_is_refused_by_place(tmp_path):
    path = tmp_path / f"7{SUFFIX}"
    (inputs,) = HeatReader().claim([path, tmp_path / "7_results.json"])
    assert inputs == InputSet("instruction-heat", "instruction heat", (path,))
    path.write_text('{"format": "rpl instruction heat 1", "kernels": [{"kernel": "a"}]}')
    with pytest.raises(BadDataError, match=r"kernels\.0\.symbol: no instruction heat"):
        HeatReader().read(inputs)


def test_documents_and_reports_show_it_beside_a_recording(heat_of, tmp_path, rpl_make_rocpd, rpl_cli):
    heat_of([launched(("0x4", "v_add_f32", 6, 6 * 16), ("0x8", "s_nop", 2, 0))])
    run = tmp_path / "out"
    recording = rpl_make_rocpd([("twice(float*)", 0, 1000)])
    ran = rpl_cli("profile", "--from", recording, "--from", tmp_path / f"7{SUFFIX}", "-o", run)
    assert ran.exit_code == 0, ran.stderr
    assert "twice: 8 instructions of 2 waves in 1 launch, 16.0 of 64 lanes on" in ran.stdout
    assert "75.0%     3.0      16.0  0x4      v_add_f32" in ran.stdout
    section = json.loads((run / "profile.json").read_text())["sections"]["instruction_heat"]
    assert section["kernels"][0]["executed"] == 8
    page = rpl_cli("report", "--format", "html", run)
    assert "Instruction heat" in page.stdout
