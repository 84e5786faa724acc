"""What the user names becomes files: bounded, in a fixed order, each once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rpl_core.errors import BadDataError, MissingError
from rpl_core.ingest import expand


@pytest.fixture
def tree(tmp_path):
    for name in ("b/2", "b/10", "a/x/y", "a/profile.json", "c"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return tmp_path


def names(paths, root):
    return [str(path.relative_to(root)) for path in paths]


def test_folders_are_walked_in_order_without_the_documents_of_rpl(tree):
    assert names(expand([tree]), tree) == ["a/x/y", "b/10", "b/2", "c"]


def test_arguments_keep_their_order(tree):
    assert names(expand([tree / "c", tree / "b"]), tree) == ["c", "b/10", "b/2"]


def test_a_file_reached_in_two_ways_is_taken_once(tree, monkeypatch):
    monkeypatch.chdir(tree)
    (tree / "link").symlink_to("c")
    assert len(expand([Path("c"), tree / "c", Path("b/../c"), tree / "link", tree])) == 4


def test_links_inside_folders_are_not_followed(tree):
    (tree / "b" / "up").symlink_to("..")
    for name in ("0", "file"):
        (tree / "b" / name).symlink_to("../c")
    assert names(expand([tree / "b"]), tree) == ["b/10", "b/2"]


def test_depth_is_bounded(tmp_path):
    deep = tmp_path.joinpath(*["d"] * 12)
    deep.mkdir(parents=True)
    (deep / "file").write_text("")
    assert expand([tmp_path]) == ()


def test_number_of_files_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("rpl_core.ingest.MAX_FILES", 3)
    for number in range(4):
        (tmp_path / str(number)).write_text("")
    with pytest.raises(BadDataError, match="more than 3 files"):
        expand([tmp_path])


def test_path_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(MissingError, match="nowhere does not exist"):
        expand([tmp_path / "nowhere"])


def test_pipes_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert expand([tmp_path]) == ()
    with pytest.raises(BadDataError, match="a pipe or a device"):
        expand([tmp_path / "pipe"])
