"""What is not one program is not averaged: other kernels, counts or GPUs are refused with choices."""

from __future__ import annotations

import json

import pytest


def test_two_programs_in_one_folder_are_refused_with_the_choices(rpl_make_rocpd, rpl_cli, tmp_path):
    rpl_make_rocpd([("a", 0, 100), ("b", 200, 300)], name="one_results.db", pid=1)
    path = rpl_make_rocpd([("c", 10_000, 10_100)], name="two_results.db", pid=2)
    refused = rpl_cli("analyze", path.parent).assert_exit(65)
    assert "are not runs of one program: kernels in one of them only: a and 2 more" in refused.stderr
    assert "--ranks" in refused.stderr
    assert "--each-is-a-run" in refused.stderr
    rpl_cli("analyze", path).assert_ok()


def test_another_number_of_launches_is_refused_unless_the_user_says_they_are_runs(
    rpl_make_rocpd, rpl_cli, tmp_path
):
    first = rpl_make_rocpd([("a", 0, 100), ("a", 200, 300)], name="one_results.db", pid=1)
    second = rpl_make_rocpd([("a", 10_000, 10_100)], name="two_results.db", pid=2)
    refused = rpl_cli("analyze", first, second).assert_exit(65)
    assert "a was launched 2 and 1 times" in refused.stderr
    document = rpl_cli("analyze", first, second, "--each-is-a-run", "--json").assert_ok().json()
    assert document["stability"]["runs"] == 2
    document = rpl_cli("analyze", first, second, "--ranks", "--json").assert_ok().json()
    assert document["launches"] == 3


def test_repeated_runs_of_one_program_stay_runs(rpl_make_rocpd, rpl_cli):
    first = rpl_make_rocpd([("a", 0, 100)], name="one_results.db", pid=1)
    second = rpl_make_rocpd([("a", 10_000, 10_110)], name="two_results.db", pid=2)
    assert rpl_cli("analyze", first, second, "--json").assert_ok().json()["stability"]["runs"] == 2


@pytest.mark.data
def test_folders_of_two_gpus_side_by_side_are_refused(rpl_shared_data, rpl_cli, tmp_path):
    """As rocprofiler-compute writes them: gfx90a beside gfx942, by their ``sysinfo.csv``."""
    folder = rpl_shared_data / "timing" / "dispatch_0"
    both = folder / "MI200", folder / "MI300X_A1"
    for words in ((folder,), both, (*both, "--each-is-a-run")):
        refused = rpl_cli("analyze", *words).assert_exit(65)
        assert "different GPUs" in refused.stderr
        assert "gfx90a" in refused.stderr
        assert "gfx942" in refused.stderr
    rpl_cli("analyze", folder / "MI300X_A1", "-o", tmp_path / "one").assert_ok()
    assert json.loads((tmp_path / "one" / "profile.json").read_text())["stability"]["runs"] == 1
