"""Captures of rpl's own tool: hashes, packed memory and sentinel are checked, hostile ones are refused."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
import xxhash
import zstandard

from rpl_core.errors import BadDataError, MissingError

BASE = 0x7F0000200000
CHUNK = 1 << 20
REGION = f"memory/region_{BASE:x}"
VARIABLE = "module_variables/0"


@pytest.mark.parametrize("packed", [False, True])
def test_a_capture_is_read_checked_and_compared(rpl_cli, write_rpl_capture, packed):
    folder, other = write_rpl_capture(packed=packed), write_rpl_capture("other")
    said = rpl_cli("capture", "info", str(folder), "--json").json()
    assert (said["layout"], said["complete"]) == ("rpl", True)
    assert said["extras"]["dispatch"]["match_index"] == 3
    assert said["variables"][0]["name"] == "table"
    text = rpl_cli("capture", "info", str(folder)).stdout
    for part in ("argument   values", "changed by the launch", "device pool", "1200 ns"):
        assert part in text
    verified = rpl_cli("capture", "verify", str(folder))
    assert verified.exit_code == 0, verified.stdout
    assert rpl_cli("capture", "diff", str(folder), str(other)).stdout == "alike\n"


def test_a_difference_is_found_in_packed_memory_and_in_variables(rpl_cli, write_rpl_capture):
    plain, packed = write_rpl_capture("plain"), write_rpl_capture("packed", packed=True)
    content = bytearray((plain / f"{REGION}.bin").read_bytes())
    content[CHUNK + 7] = 1  # in the hole
    (packed / f"{REGION}.bin.zst").write_bytes(zstandard.compress(bytes(content)))
    (packed / "module_variables" / "0.bin").write_bytes(b"ttttTttt")
    said = rpl_cli("capture", "diff", str(plain), str(packed), "--json").json()
    assert said["bytes"] == [
        {"name": f"region 0x{BASE:x}", "first": BASE + CHUNK + 7, "count": 1},
        {"name": "variable table", "first": 4, "count": 1},
    ]


def _flip(path, offset):
    with path.open("r+b") as stream:
        stream.seek(offset)
        stream.write(b"!")


def _claim_changed(data):
    data["memory"]["regions"][1]["changed_by_launch"] = True


def _more_lds(data):
    data["dispatch"]["group_segment"]["launched"] = 0


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda folder: _flip(folder / f"{REGION}.bin", 6), f"chunk at 0x{BASE:x}"),
        (lambda folder: _flip(folder / f"{REGION}.bin", CHUNK + 6), f"chunk at 0x{BASE + CHUNK:x}"),
        (lambda folder: _flip(folder / f"{REGION}.bin", 3 * CHUNK + 6), f"chunk at 0x{BASE + 3 * CHUNK:x}"),
        (lambda folder: _flip(folder / f"{REGION}.pre.xxh3", 9), f"chunk at 0x{BASE + CHUNK:x}"),
        (lambda folder: _flip(folder / f"{REGION}.pre.xxh3", 25), f"chunk at 0x{BASE + 3 * CHUNK:x}"),
        (lambda folder: os.truncate(folder / f"{REGION}.post.xxh3", 24), "post.xxh3 has 24 bytes"),
        (lambda folder: (folder / f"{REGION}.pre.xxh3").unlink(), "pre.xxh3 is absent"),
        (lambda folder: _flip(folder / "kernarg.bin", 3), "kernarg.bin was changed"),
        (lambda folder: (folder / "rpl_capture_complete").unlink(), "cut short"),
        (lambda folder: (folder / "capture.json").unlink(), "capture.json is absent"),
        (lambda folder: _flip(folder / f"{REGION}.post.xxh3", 25), "post.xxh3 was changed"),
        (lambda folder: _flip(folder / f"{VARIABLE}.bin", 3), f"{VARIABLE}.bin does not match its hash"),
        (lambda folder: _flip(folder / f"{VARIABLE}.pre.xxh3", 3), f"{VARIABLE}.bin does not match its hash"),
        (lambda folder: _flip(folder / f"{VARIABLE}.post.xxh3", 3), "changed the variable table"),
        (lambda folder: os.truncate(folder / f"{VARIABLE}.pre.xxh3", 7), "0.pre.xxh3 has 7 bytes"),
        (lambda folder: os.truncate(folder / f"{VARIABLE}.post.xxh3", 9), "0.post.xxh3 has 9 bytes"),
        (lambda folder: (folder / f"{VARIABLE}.pre.xxh3").unlink(), "0.pre.xxh3 is absent"),
        (lambda folder: (folder / f"{VARIABLE}.post.xxh3").unlink(), "0.post.xxh3 is absent"),
        (lambda folder: os.truncate(folder / f"{VARIABLE}.bin", 7), "0.bin has 7 bytes"),
    ],
)
def test_verify_names_what_is_not_as_it_was_written(rpl_cli, write_rpl_capture, damage, reason):
    folder = write_rpl_capture()
    damage(folder)
    ran = rpl_cli("capture", "verify", str(folder), "--json")
    assert ran.exit_code == 65
    assert any(reason in problem for problem in ran.json()["problems"]), ran.stdout


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_claim_changed, "disagree whether the launch changed"),
        (_more_lds, "different bytes of LDS"),
        (lambda data: data["memory"]["regions"].pop(), "list different regions"),
    ],
)
def test_lists_that_disagree_are_named_though_the_seal_is_whole(
    rpl_cli, write_rpl_capture, change_json, seal_capture, change, reason
):
    folder = write_rpl_capture()
    change_json(folder / "capture.json", change)
    seal_capture(folder)
    ran = rpl_cli("capture", "verify", str(folder))
    assert ran.exit_code == 65
    assert reason in ran.stdout


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data.update(schema_version="2.0"), "schema version is 2.0"),
        (lambda data: data["module_variables"][0].update(file="../../etc/passwd"), "module_variables/"),
        (lambda data: data["module_variables"][0].update(size=0), "greater than 0"),
        (lambda data: data["memory"].update(compression="rar"), "compression"),
        (lambda data: data["memory"].update(chunk_bytes=1), "chunk_bytes"),
        (lambda data: data["memory"]["regions"][0].update(base=-1), "base"),
        (lambda data: data.pop("memory"), "memory"),
        (lambda data: data.update(warnings=["w" * (1 << 17)]), "warnings"),
    ],
)
def test_extras_that_can_not_be_true_are_refused(rpl_cli, write_rpl_capture, change_json, change, reason):
    folder = write_rpl_capture()
    change_json(folder / "capture.json", change)
    ran = rpl_cli("capture", "info", str(folder))
    assert ran.exit_code == 65
    assert reason in ran.stderr


def test_a_region_larger_than_any_gpu_is_refused_before_it_is_read(rpl_cli, write_rpl_capture, change_json):
    folder, size = write_rpl_capture(packed=True), 1 << 46
    change_json(folder / "memory_regions.json", lambda data: data["regions"][1].update(size=size))
    change_json(folder / "capture.json", lambda data: data["memory"]["regions"][1].update(size=size))
    problems = rpl_cli("capture", "verify", str(folder), "--json").json()["problems"]
    assert any("larger than the memory of any GPU" in problem for problem in problems)
    assert any(f"too small to hold {size} bytes" in problem for problem in problems)


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (zstandard.compress(bytes(range(64)) + bytes(1 << 28)), "more than 64 bytes"),
        (zstandard.compress(bytes(range(63))), "63 bytes, 64 are said"),
        (zstandard.compress(bytes(range(64)))[:-3], "can't be unpacked|bytes, 64 are said"),
        (b"no frame", "can't be unpacked"),
    ],
    ids=["bomb", "short", "cut", "foreign"],
)
@pytest.mark.parametrize("hashed", [True, False])
def test_packed_memory_of_another_size_is_refused(
    rpl_cli, write_rpl_capture, change_json, seal_capture, packed, reason, hashed
):
    folder = write_rpl_capture(packed=True)
    (folder / "memory" / f"region_{BASE + 8 * CHUNK:x}.bin.zst").write_bytes(packed)
    if not hashed:
        change_json(folder / "capture.json", lambda data: data["memory"].update(hash="none"))
        seal_capture(folder)
    ran = rpl_cli("capture", "verify", str(folder), "--json")
    assert ran.exit_code == 65
    problems = ran.json()["problems"]
    if hashed:
        reason += "|does not match its hash"
    assert any(part in problem for part in reason.split("|") for problem in problems), problems


def test_every_flipped_bit_of_a_file_is_found(rpl_cli, write_rpl_capture):
    """In each file of a capture but the sentinel: 40 places each, the same ones every time."""
    import random

    from rpl_vmreplay.capture.folder import open_capture
    from rpl_vmreplay.capture.wholeness import problems_of

    folder, places = write_rpl_capture(), random.Random(26)
    files = sorted(folder.rglob("*.*"))
    assert len(files) == 14
    for path in files:
        content = path.read_bytes()
        for _ in range(4 if len(content) > CHUNK else 40):
            changed = bytearray(content)
            place = places.randrange(8 * len(content))
            changed[place // 8] ^= 1 << place % 8
            path.write_bytes(changed)
            try:
                found = next(problems_of(open_capture(folder)), None)
            except (BadDataError, MissingError) as error:
                found = error.fact
            assert found is not None, (path, place)
        path.write_bytes(content)
    assert rpl_cli("capture", "verify", str(folder)).exit_code == 0


def test_hashes_are_those_of_the_public_algorithm():
    """XXH3 with 64 bits and seed 0, of no bytes: the value that its own documentation gives."""
    assert xxhash.xxh3_64_hexdigest(b"") == "2d06800538d394c2"


def test_verify_ends_soon_where_countless_files_are_absent(rpl_cli, write_rpl_capture, change_json):
    """Each listed region is a file to look at; of thousands that are not there a thousand are told."""
    folder = write_rpl_capture()

    def add(data):
        more = {"size": 1, "is_pool": False, "is_vmem": False, "contains_kernarg": False}
        data["regions"] += [{**more, "base": (1 << 40) + 2 * i} for i in range(20_000)]

    change_json(folder / "memory_regions.json", add)
    told = rpl_cli("capture", "verify", str(folder), "--json").assert_exit(65).json()["problems"]
    assert len(told) == 1001
    assert "first 1000" in told[-1]


def test_each_file_is_opened_once_and_none_is_looked_at_by_itself(write_rpl_capture, monkeypatch):
    """Of half a million files: their kinds and sizes come from one look at each folder."""
    from rpl_vmreplay.capture.folder import open_capture
    from rpl_vmreplay.capture.wholeness import problems_of

    capture, done = open_capture(write_rpl_capture()), Counter()

    def noted(name, real):
        def called(self, *words, **options):
            done[name, self] += 1
            return real(self, *words, **options)

        return called

    for name in ("open", "stat", "lstat", "is_symlink", "exists"):
        monkeypatch.setattr(Path, name, noted(name, getattr(Path, name)))
    assert list(problems_of(capture)) == []
    of_parts = Counter(kind for kind, path in done if path.parent != capture.folder)
    assert set(of_parts) == {"open"}
    assert {times for (kind, path), times in done.items() if path.parent != capture.folder} == {1}


@pytest.mark.parametrize("name", ["memory_regions.json", "capture.json"])
def test_a_region_listed_twice_is_refused(rpl_cli, write_rpl_capture, change_json, name):
    """Both tell figures of it, and nobody knows which ones count."""
    folder = write_rpl_capture()

    def repeat(data):
        regions = (data["memory"] if name == "capture.json" else data)["regions"]
        regions.append(regions[0])

    change_json(folder / name, repeat)
    told = rpl_cli("capture", "verify", str(folder)).assert_exit(65).stderr
    assert "one region 2 times" in told
    assert name in told
