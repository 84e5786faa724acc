"""A manifest may come from anywhere: it is data, and it never leads out of its directory."""

from __future__ import annotations

import json

import pytest

from rpl_core.errors import BadDataError
from rpl_core.run_directory import load_manifest, pass_files


def change(run, **members):
    path = run.path / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **members}))


def artefact(path):
    return {"path": path, "sha256": "0" * 64, "bytes": 1}


def with_artefact(run, path):
    entry = json.loads((run.path / "run.json").read_text())["passes"][0]
    change(run, passes=[{**entry, "state": "complete", "artefacts": [artefact(path)]}])


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside", "a/../../outside", "link"])
def test_path_that_leaves_the_run_directory_is_refused(new_run, tmp_path, path):
    run = new_run("run_1")
    (tmp_path / "outside").write_text("secret")
    (run.path / "link").symlink_to(tmp_path / "outside")
    with_artefact(run, path)
    with pytest.raises(BadDataError, match="outside of the run directory"):
        pass_files(run.path, load_manifest(run.path).passes[0])


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "loop/x"])
def test_impossible_path_is_refused(new_run, path):
    run = new_run("run_1")
    (run.path / "loop").symlink_to("loop")
    with_artefact(run, path)
    with pytest.raises(BadDataError, match=r"run directory|impossible path"):
        pass_files(run.path, load_manifest(run.path).passes[0])


def test_file_named_twice_is_taken_once(new_run, finish_pass):
    run = new_run("run_1")
    finish_pass(run, "run_1", {"a.db": b"x"})
    entry = json.loads((run.path / "run.json").read_text())["passes"][0]
    twice = [*entry["artefacts"], artefact("passes/../passes/run_1/a.db")]
    change(run, passes=[{**entry, "artefacts": twice}])
    assert len(pass_files(run.path, load_manifest(run.path).passes[0])) == 1


@pytest.mark.parametrize("spelling", ["passes/run_1/a.db", "passes/./run_1/a.db"])
def test_one_file_is_not_read_for_many_passes_or_as_many_recordings(new_run, finish_pass, spelling):
    """A manifest of 3 MB kept rpl busy for hours with one small file; a hundred repeated runs are read."""
    run = new_run("run_1")
    finish_pass(run, "run_1", {"a.db": b"x"})
    entry = json.loads((run.path / "run.json").read_text())["passes"][0]
    again = {**entry, "artefacts": [artefact(spelling)]}
    for count in (99, 100):
        for members in (
            {"passes": [entry, *[again] * count]},
            {"passes": [], "recordings": [*entry["artefacts"], *again["artefacts"] * count]},
        ):
            change(run, **{"recordings": [], **members})
            if count == 99:
                load_manifest(run.path)
                continue
            with pytest.raises(BadDataError, match=r"a file 101 times: 'passes/run_1/a\.db'"):
                load_manifest(run.path)


@pytest.mark.parametrize(
    "members",
    [
        {"schema_version": "2.0"},
        {"state": "great"},
        {"passes": "none"},
        {"passes": [{"name": 1}]},
        {"command": None},
        {"options": {"runs": [1]}},
        {"surprise": 1},
    ],
)
def test_member_of_another_type_or_version_is_named(new_run, members):
    run = new_run("run_1")
    change(run, **members)
    with pytest.raises(BadDataError, match=next(iter(members))) as caught:
        load_manifest(run.path)
    assert "rpl analyze FILE" in str(caught.value.next_step)


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"\xff", b"null"])
def test_damaged_manifest_is_bad_data(new_run, content):
    run = new_run("run_1")
    (run.path / "run.json").write_bytes(content)
    with pytest.raises(BadDataError, match="not a run manifest"):
        load_manifest(run.path)


def test_huge_manifest_is_not_read(new_run):
    run = new_run("run_1")
    with (run.path / "run.json").open("r+b") as stream:
        stream.truncate(33 << 20)
    with pytest.raises(BadDataError, match="larger than 32 MiB"):
        load_manifest(run.path)


def test_manifest_of_countless_values_is_not_parsed(new_run):
    """Each of them takes a hundred times its text."""
    run = new_run("run_1")
    (run.path / "run.json").write_bytes(b'{"passes": [' + b"0," * 100_000 + b"0]}")
    with pytest.raises(BadDataError, match="countless tiny values"):
        load_manifest(run.path)


def test_command_line_refuses_with_one_line(new_run, rpl_cli):
    run = new_run("run_1")
    with_artefact(run, "../../etc/passwd")
    outcome = rpl_cli("analyze", run.path).assert_exit(65)
    assert outcome.stderr.count("\n") == 1
    assert outcome.stdout == ""


def test_impossible_recorded_option_is_bad_data(new_run, rpl_cli):
    run = new_run("run_1")
    change(run, options={"clock_mhz": "fast"})
    outcome = rpl_cli("analyze", run.path).assert_exit(65)
    assert "impossible clock-mhz" in outcome.stderr
