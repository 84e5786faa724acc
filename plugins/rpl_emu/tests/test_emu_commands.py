"""The commands where the native program is absent, or a stand-in that says what it is told."""

from __future__ import annotations

import csv
import json
from types import SimpleNamespace

import pytest

from rpl_emu.rocpd_file import amd_counters, counter_map

LAUNCHED = {
    "kernel": "k",
    "outcome": "ended",
    "waves": 4,
    "instructions": 30,
    "not_to_the_bit": [],
    "classes": {
        "valu.fma.f32": {"executed": 10, "lanes": 640},
        "mfma.f16": {"executed": 3, "lanes": 192},
        "flat.read": {"executed": 2, "lanes": 128, "bytes": 512},
    },
}


@pytest.fixture
def program(tmp_path, monkeypatch):
    """``program(status, stdout, stderr)``: what rpl-emu shall do."""
    monkeypatch.setenv("RPL_EMU_FOLDER", str(tmp_path))

    def make(status, stdout="", stderr=""):
        path = tmp_path / "rpl-emu"
        (tmp_path / "out").write_text(stdout)
        (tmp_path / "err").write_text(stderr)
        lines = [
            f'echo "$@" > {tmp_path}/words',
            f"cat {tmp_path}/out",
            f"cat {tmp_path}/err >&2",
            f"exit {status}",
        ]
        path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        path.chmod(0o755)
        return tmp_path / "words"

    return make


def test_counters_follow_the_map():
    found = amd_counters(LAUNCHED)
    assert found["SQ_WAVES"] == {"value": 4, "status": "class unverified"}
    assert found["SQ_INSTS_VALU"]["value"] == 13
    assert found["SQ_INSTS_VALU_FMA_F32"]["value"] == 10
    assert found["SQ_INSTS_VMEM_RD"]["value"] == found["SQ_INSTS_FLAT"]["value"] == 2
    assert {rule.get("seen") for rule in counter_map()["counters"].values()} == {None, *counter_map()["seen"]}
    assert {rule["status"] for rule in counter_map()["counters"].values()} == {"class unverified"}


def test_a_launch_prints_one_document(rpl_cli, program):
    words = program(0, json.dumps(LAUNCHED))
    ran = rpl_cli("emu", "launch", "k.hsaco", "--grid", "256", "--arg", "i32:5", "--json")
    assert ran.exit_code == 0
    document = json.loads(ran.stdout)
    assert document["amd_counters"]["SQ_INSTS_MFMA"]["value"] == 3
    assert "--grid 256" in words.read_text()
    assert "--arg i32:5" in words.read_text()


@pytest.mark.parametrize(
    ("status", "message"),
    [(69, "unknown instruction: s_sendmsg at 0x40"), (65, "no ELF file"), (64, "no kernel k")],
)
def test_refusals_are_rpls_own_errors(rpl_cli, program, status, message):
    program(status, stderr=f"rpl-emu: {message}\n")
    ran = rpl_cli("emu", "launch", "k.hsaco")
    assert ran.exit_code == status
    assert message in ran.stderr


def test_a_fault_keeps_its_exit_code(rpl_cli, program):
    program(
        4, json.dumps({**LAUNCHED, "outcome": "memory_fault"}), "rpl-emu: store outside of mapped memory\n"
    )
    ran = rpl_cli("emu", "launch", "k.hsaco")
    assert ran.exit_code == 4
    assert "store outside of mapped memory" in ran.stderr
    assert "memory_fault" in ran.stdout


def test_without_the_program_the_remedy_is_named(rpl_cli, tmp_path, monkeypatch):
    monkeypatch.setenv("RPL_EMU_FOLDER", str(tmp_path))
    ran = rpl_cli("emu", "doctor")
    assert ran.exit_code == 69
    assert "pip install rpl-native" in ran.stderr


def test_the_mix_finds_loops_and_leaves_padding_out(rpl_cli, program):
    code = [
        {"at": 0, "opcode": "v_add_f32", "class": "valu.add.f32"},
        {"at": 4, "opcode": "s_cbranch_scc0", "class": "branch", "target": 0},
        {"at": 8, "opcode": "s_endpgm", "class": "internal"},
        {"at": 12, "opcode": "s_nop", "class": "internal"},
    ]
    program(0, json.dumps({"k": {"kernel": True, "instructions": code}}))
    ran = rpl_cli("isa-mix", "k.hsaco", "--json")
    (mix,) = json.loads(ran.stdout)["functions"]
    assert mix["instructions"] == 3
    assert mix["loops"] == [{"head": 0, "end": 4, "classes": {"branch": 1, "valu.add.f32": 1}}]


def test_the_mix_of_a_program_is_that_of_the_code_it_carries(rpl_cli, program, tmp_path, monkeypatch):
    """An executable holds its code in a bundle: what abi-diff reads of it is what is decoded."""
    objects = tuple(
        SimpleNamespace(architecture=name, elf=name.encode()) for name in ("gfx90a", "gfx942", "gfx942")
    )
    monkeypatch.setattr("rpl_codeobject.reading.read_code_objects", lambda _path: objects)
    (tmp_path / "app").write_bytes(b"a program")
    code = [{"at": 0, "opcode": "s_endpgm", "class": "internal"}]
    program(0, json.dumps({"k": {"kernel": True, "instructions": code}}))
    ran = rpl_cli("isa-mix", tmp_path / "app", "--json").assert_ok()
    assert [mix["name"] for mix in ran.json()["functions"]] == ["k", "k"]
    monkeypatch.setattr("rpl_codeobject.reading.read_code_objects", lambda _path: objects[:1])
    assert "holds code for gfx90a" in rpl_cli("isa-mix", tmp_path / "app").assert_exit(65).stderr


#: What a launch of vecCopy executes for each of its waves; of classes that no counter asks for, nothing.
WAVES = 16384
COPY = {
    **LAUNCHED,
    "kernel": "vecCopy",
    "waves": WAVES,
    "classes": {
        name: {"executed": count * WAVES, "lanes": 0}
        for name, count in {
            "valu.int32": 2, "valu.compare": 1, "valu.int64": 3, "salu": 3, "smem": 4, "branch": 1,
            "global.read": 1, "global.write": 1, "internal": 4,
        }.items()
    },
}  # fmt: skip


def _launched(folder, document):
    path = folder / "launched.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_counters_are_compared_with_a_recorded_mi300x(rpl_cli, rpl_shared_data, tmp_path):
    # Recorded by rocprofv2, a column for each counter: as rocprofv3 would have written its first dispatch.
    with (rpl_shared_data / "counters_gfx942/path_MI300X_A1/pmc_perf.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    recorded = tmp_path / "recorded.csv"
    lines = [
        f'1,"{row["Kernel_Name"]}",{name},{row[name]}' for name in counter_map()["counters"] if name in row
    ]
    recorded.write_text("\n".join(["Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value", *lines, ""]))
    ran = rpl_cli("emu", "calibrate", _launched(tmp_path, COPY), str(recorded), "--json")
    found = {one["counter"]: one for one in json.loads(ran.stdout)["counters"]}
    # Integer classes are not AMD's: which of the 64-bit instructions count is not known.
    assert {name for name, one in found.items() if not one["agrees"]} == {
        "SQ_INSTS_VALU_INT32",
        "SQ_INSTS_VALU_INT64",
    }
    for name, rule in counter_map()["counters"].items():
        if rule.get("seen"):
            assert found[name]["agrees"], name
    assert ran.exit_code == 1


def test_a_file_without_the_kernel_names_the_next_step(rpl_cli, tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n1,other,SQ_WAVES,4\n")
    ran = rpl_cli("emu", "calibrate", _launched(tmp_path, LAUNCHED), str(path), "--kernel", "mine")
    assert ran.exit_code == 65
    assert "rocprofv3 --pmc" in ran.stderr
    ran = rpl_cli("emu", "calibrate", _launched(tmp_path, LAUNCHED), str(path), "--kernel", "other")
    assert ran.exit_code == 0
    assert "agrees" in ran.stdout


METRIC = ("--metric", "modelled-issue-cycles")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--device", "gfx942-emu"), "nothing can be measured on gfx942-emu"),
        (("--device", "gfx942", *METRIC), "is of gfx942-emu, not of gfx942"),
        (METRIC, "is of gfx942-emu, not of the GPU"),
        (("--device", "gfx942-emu", *METRIC, "--in-place"), "--in-place is about what is measured"),
        (("--device", "gfx942-emu", *METRIC, "--allow-unverified"), "a model accepts nothing"),
    ],
)
def test_a_model_takes_the_place_of_a_measurement_only_where_it_is_asked_for(rpl_cli, tmp_path, words, said):
    (tmp_path / "k.hip").write_text("")
    ran = rpl_cli("optimize", "--auto-approve", *words, "k.hip", "./app", cwd=tmp_path)
    assert (ran.exit_code, ran.stderr.count("\n")) == (64, 1)
    assert said in ran.stderr


def test_every_unit_counts_for_the_issue_cycles():
    from rpl_emu.issue_cycles import IssueCycles, issue_cycles

    passes = {"vector": 100, "scalar": 20, "memory": 8}
    assert issue_cycles({"modelled": {"issue_passes": passes, "simds": 4}}) == 4 * 128 / 4
    assert IssueCycles().architecture == "gfx942"
