"""Captures of both public tools are read; what is damaged, incomplete or hostile is refused with a reason."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from pydantic import ValidationError

from rpl_core.errors import BadDataError
from rpl_vmreplay.capture.folder import open_capture
from rpl_vmreplay.capture.records import Regions

BASE = 0x7F0000200000
REGION = f"memory/region_{BASE:x}.bin"


@pytest.mark.parametrize(
    ("layout", "complete", "kernel_object"), [("rocm-perf-lab", None, BASE + 4096), ("kerncap", True, None)]
)
def test_captures_of_both_tools_are_read(rpl_cli, write_capture, layout, complete, kernel_object):
    folder = write_capture(layout)
    said = rpl_cli("capture", "info", str(folder), "--json").json()
    assert (said["layout"], said["complete"]) == (layout, complete)
    assert said["dispatch"]["kernel_object"] == kernel_object
    assert said["dispatch"]["grid"] == [1024, 1, 1]
    assert [region["base"] for region in said["regions"]] == [BASE, BASE + 8192]
    assert len(said["variables"]) == (1 if layout == "kerncap" else 0)
    text = rpl_cli("capture", "info", str(folder)).stdout
    assert "scale(float*, int)" in text
    assert "2048 bytes" in text
    assert "kernel arguments" in text
    assert rpl_cli("capture", "verify", str(folder)).exit_code == 0


def test_names_with_control_characters_are_shown_without_them(rpl_cli, write_capture, change_json):
    folder = write_capture()
    change_json(folder / "dispatch.json", lambda data: data.update(demangled_name="sc\x1b[2Jale\n<&>"))
    assert "\x1b" not in rpl_cli("capture", "info", str(folder)).stdout


def _repeat(data):
    return data["regions"].append({**data["regions"][0], "base": BASE + 64})


def _first(**changes):
    return lambda data: data["regions"][0].update(changes)


def _blob(place):
    return lambda data: data["variables"][0].update(blob=place)


@pytest.mark.parametrize(
    ("name", "edit", "reason"),
    [
        ("memory_regions.json", _repeat, "overlap"),
        ("memory_regions.json", _first(base=1 << 64), "less than"),
        ("memory_regions.json", _first(size=(1 << 64) - 1), "behind the last address"),
        ("memory_regions.json", _first(size=0), "greater than 0"),
        ("memory_regions.json", _first(base="0x7f00"), "valid integer"),
        ("memory_regions.json", lambda data: data.pop("regions"), "required"),
        ("dispatch.json", lambda data: data.update(grid=[1, 1]), "grid"),
        ("dispatch.json", lambda data: data.update(kernarg_size=1 << 40), "kernarg_size"),
        ("dispatch.json", lambda data: data.pop("isa_name"), "isa_name"),
        (
            "module_variables.json",
            _blob("../../etc/passwd"),
            "module_variables/",
        ),
        (
            "module_variables.json",
            _blob("module_variables/.."),
            "its file",
        ),
        ("module_variables.json", _blob("/etc/passwd"), "its file"),
    ],
)
def test_lists_that_can_not_be_true_are_refused(rpl_cli, write_capture, change_json, name, edit, reason):
    folder = write_capture("kerncap")
    change_json(folder / name, edit)
    for command in ("info", "verify"):
        ran = rpl_cli("capture", command, str(folder))
        assert ran.exit_code == 65
        assert reason in ran.stderr
        assert ran.stderr.count("\n") == 1


def test_countless_mistakes_are_not_told_one_by_one(write_capture):
    """Gigabytes where each of them is kept."""
    folder = write_capture()
    listed = folder / "memory_regions.json"
    listed.write_text('{"regions": [' + "0," * 100_000 + "0]}")
    with pytest.raises(BadDataError, match="tiny values"):
        open_capture(folder)
    listed.write_text('{"regions": [' + '"instead of it",' * 3 + "0]}")
    with pytest.raises(ValidationError) as told:
        Regions.model_validate_json(listed.read_bytes())
    assert told.value.error_count() == 1


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00", '{"regions": NaN}', "[" * 100_000])
def test_what_is_no_json_is_refused(rpl_cli, write_capture, text):
    folder = write_capture()
    (folder / "memory_regions.json").write_text(text)
    assert rpl_cli("capture", "info", str(folder)).exit_code == 65


def _link(folder):
    (folder / REGION).unlink()
    (folder / REGION).symlink_to("/etc/passwd")


def _link_folder(folder):
    shutil.move(folder / "memory", folder / "elsewhere")
    (folder / "memory").symlink_to(folder / "elsewhere")


def _pipe(folder):
    (folder / REGION).unlink()
    os.mkfifo(folder / REGION)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda folder: (folder / REGION).unlink(), f"{REGION} is absent"),
        (lambda folder: os.truncate(folder / REGION, 4095), f"{REGION} has 4095 bytes, 4096 are said"),
        (lambda folder: os.truncate(folder / "kernarg.bin", 8), "kernarg.bin has 8 bytes"),
        (lambda folder: (folder / "kernel.hsaco").unlink(), "kernel.hsaco is absent"),
        (lambda folder: (folder / "kernel.hsaco").write_text("elf"), "kernel.hsaco is no code object"),
        (lambda folder: (folder / "capture_complete").unlink(), "cut short"),
        (_link, "not a plain file"),
        (_link_folder, "memory is a link"),
        (_pipe, "not a plain file"),
    ],
)
def test_verify_names_what_is_not_whole(rpl_cli, write_capture, damage, reason):
    folder = write_capture("kerncap")
    damage(folder)
    ran = rpl_cli("capture", "verify", str(folder), "--json")
    assert ran.exit_code == 65
    said = ran.json()
    assert said["whole"] is False
    assert any(reason in problem for problem in said["problems"]), said
    assert rpl_cli("capture", "diff", str(folder), str(folder)).exit_code == 65


#: Every field of every file of a capture that names a file, or that a file's name is made of.
NAMES = (
    ("kerncap", "module_variables.json", ("variables", 0, "blob")),
    ("rpl", "capture.json", ("module_variables", 0, "file")),
)
OUTSIDE = (
    "../outside", "/outside", "module_variables/../../outside", "module_variables/..", "module_variables/",
    "memory/../outside", "outside", "..", "module_variables\0/x", "module_variables/a/b",
)  # fmt: skip


@pytest.mark.parametrize(("layout", "name", "place"), NAMES)
@pytest.mark.parametrize("value", OUTSIDE)
def test_no_name_leads_out_of_the_capture(
    rpl_cli, write_capture, write_rpl_capture, change_json, seal_capture, layout, name, place, value
):
    """Reading, verifying, comparing and replaying refuse it, and nothing outside is opened."""
    folder = write_rpl_capture() if layout == "rpl" else write_capture(layout)
    outside = folder.parent / "outside"
    os.mkfifo(outside)  # who opens it never ends

    def change(data):
        for part in place[:-1]:
            data = data[part]
        data[place[-1]] = value

    change_json(folder / name, change)
    if layout == "rpl":
        seal_capture(folder)
    for command in (("capture", "info"), ("capture", "verify"), ("replay", "full-vm")):
        ran = rpl_cli(*command, str(folder))
        assert ran.exit_code == 65, (command, ran.stderr)
    assert rpl_cli("capture", "diff", str(folder), str(folder)).exit_code == 65


@pytest.mark.parametrize("layout", ["rpl", "kerncap", "rocm-perf-lab"])
def test_no_link_leads_out_of_the_capture(rpl_cli, write_capture, write_rpl_capture, layout):
    """Every file of it in turn, and every folder: a link to the same bytes elsewhere is refused, too."""
    folder = write_rpl_capture() if layout == "rpl" else write_capture(layout)
    unread = {"metadata.json", "capture_complete", "rpl_capture_complete"}  # by their names only, or sealed
    for path in sorted(folder.rglob("*")):
        if path.name in unread - {"rpl_capture_complete"}:
            continue
        elsewhere = folder.parent / "elsewhere"
        path.rename(elsewhere)
        path.symlink_to(elsewhere)
        ran = rpl_cli("capture", "verify", str(folder))
        assert ran.exit_code == 65, (path.name, ran.stdout, ran.stderr)
        path.unlink()
        elsewhere.rename(path)
    assert rpl_cli("capture", "verify", str(folder)).exit_code == 0


def test_a_folder_that_is_no_capture_is_missing(rpl_cli, tmp_path):
    ran = rpl_cli("capture", "verify", str(tmp_path))
    assert ran.exit_code == 69
    assert "dispatch.json is not in" in ran.stderr


def test_a_link_in_place_of_a_list_is_refused(rpl_cli, write_capture):
    folder = write_capture()
    other = write_capture(name="other")
    (folder / "dispatch.json").unlink()
    (folder / "dispatch.json").symlink_to(other / "dispatch.json")
    assert rpl_cli("capture", "info", str(folder)).exit_code == 65


def test_a_capture_is_like_itself(rpl_cli, write_capture):
    before, after = write_capture(), write_capture(name="after")
    ran = rpl_cli("capture", "diff", str(before), str(after))
    assert (ran.exit_code, ran.stdout) == (0, "alike\n")


def test_the_difference_names_launch_regions_and_bytes(rpl_cli, write_capture, change_json):
    before, after = write_capture(), write_capture(name="after")
    change_json(after / "dispatch.json", lambda data: data.update(group_segment_size=0))
    change_json(after / "memory_regions.json", lambda data: data["regions"].pop())
    memory = bytearray((after / REGION).read_bytes())
    memory[100:103] = b"xyz"
    (after / REGION).write_bytes(memory)
    ran = rpl_cli("capture", "diff", str(before), str(after), "--json")
    assert ran.exit_code == 1
    said = ran.json()
    assert said["fields"] == [{"name": "group_segment_size", "before": 2048, "after": 0}]
    assert said["only_before"] == [f"0x{BASE + 8192:x}, 64 bytes"]
    assert said["bytes"] == [{"name": f"region 0x{BASE:x}", "first": BASE + 100, "count": 3}]
    text = rpl_cli("capture", "diff", str(before), str(after)).stdout
    assert f"3 bytes differ, the first at 0x{BASE + 100:x}" in text


def test_sparse_regions_are_compared_without_reading_their_holes(rpl_cli, write_capture, change_json):
    """Eight gigabytes of holes each: reading them would take longer than the test may."""
    size = 8 << 30
    folders = [write_capture(name=name) for name in ("before", "after")]
    for number, folder in enumerate(folders):
        entry = {**json.loads((folder / "memory_regions.json").read_text())["regions"][0], "size": size}
        change_json(folder / "memory_regions.json", lambda data, entry=entry: data.update(regions=[entry]))
        with (folder / REGION).open("r+b") as stream:
            stream.truncate(size)
            stream.seek(size - 5)
            stream.write(bytes([number]))
    said = rpl_cli("capture", "diff", *map(str, folders), "--json").json()
    assert said["bytes"] == [{"name": f"region 0x{BASE:x}", "first": BASE + size - 5, "count": 1}]


def test_pages_are_whole_and_end_with_their_region(write_rpl_capture):
    from rpl_vmreplay.capture.folder import open_capture
    from rpl_vmreplay.capture.plain_memory import pages_of
    from rpl_vmreplay.interfaces import MemoryRange

    size = 3 * (1 << 20) + 100
    touched = [(BASE + 5000, 4), (BASE + 8190, 4), (BASE + size - 1, 1), (BASE + 8 * (1 << 20) + 8, 8)]
    found = pages_of(open_capture(write_rpl_capture()), [MemoryRange(*one) for one in touched])
    assert [(one.address, one.size) for one in found] == [
        (BASE + 4096, 8192),
        (BASE + 3 * (1 << 20), 100),
        (BASE + 8 * (1 << 20), 64),
    ]
