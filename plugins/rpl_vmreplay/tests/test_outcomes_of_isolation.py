"""What is made of the reports of a capture tool in several processes, and where an older capture goes.

The order of states and their exit codes are those of docs/REPLAY.md; nothing is run here.
"""

from __future__ import annotations

import json
import random

import pytest

from rpl_core.process import ProcessResult
from rpl_vmreplay.isolate import (
    Isolated,
    IsolateRequest,
    launched_kernels,
    nearest_names,
    outcome_of,
    output_folder,
    read_statuses,
)

STATES = ("captured", "capturing", "not_drained", "not_finished", "failed", "refused", "ended", "loaded")


def report(folder, pid, state, **more):
    content = {"schema_version": "1.0", "pid": pid, "state": state, "matches": 0, "launches": 0, **more}
    (folder / f"{pid}.json").write_text(json.dumps(content))


@pytest.mark.parametrize("seed", range(10))
def test_the_process_that_says_most_comes_first(tmp_path, seed):
    """By its state, then by its launches, then by its number; what is no report says nothing."""
    rng = random.Random(seed)
    told = []
    for pid in rng.sample(range(1, 99), rng.randint(1, 9)):
        state, launches = rng.choice(STATES), rng.choice((0, 3, 7))
        report(tmp_path, pid, state, launches=launches)
        told.append((STATES.index(state), -launches, pid))
    report(tmp_path, 200, "asleep")
    report(tmp_path, 201, "ended", launches=-1)
    (tmp_path / "202.json").write_text("{")
    (tmp_path / "203.json").mkdir()
    (tmp_path / "204.json").symlink_to(next(tmp_path.glob("*.json")))
    (tmp_path / "205.txt").write_text("{}")
    found = [(STATES.index(one.state), -one.launches, one.pid) for one in read_statuses(tmp_path)]
    assert found == sorted(told)


def test_kernels_of_all_processes_are_named_once(tmp_path):
    (tmp_path / "2.kernels").write_bytes(b"_Z1av\ta()\n_Z1bv\t\nplain\n")
    (tmp_path / "3.kernels").write_bytes(b"_Z1cv\tc()\n_Z1av\ta()\n\xff\tz\n")
    assert launched_kernels(tmp_path) == ("a()", "_Z1bv", "plain", "c()", "z")


NAMES = (
    "void ns::softmax<float>(float*)",
    "scale(float*)",
    "soft_clip(int)",
    "softmax_back(float*)",
    "zzz()",
)


def test_the_nearest_names_are_at_most_three_and_none_that_is_unlike():
    found = nearest_names("^soft.?max$", NAMES)
    assert found[0] == NAMES[0]
    assert set(found) == {NAMES[0], NAMES[2], NAMES[3]}
    assert nearest_names("qqqq", NAMES) == ()
    assert nearest_names("scale", NAMES)[0] == "scale(float*)"


REQUEST = {"command": ("./app",), "library": "tool.so", "output": "out"}


def outcome(tmp_path, reports, *, kernels=(), exit_status=0, **asked):
    for pid, (state, more) in enumerate(reports, 1):
        report(tmp_path, pid, state, **more)
    result = ProcessResult(exit_status=exit_status, signal=None, wall_s=1.0)
    request = IsolateRequest(**{**REQUEST, **asked})
    return outcome_of(request, Isolated(result, read_statuses(tmp_path), kernels))


@pytest.mark.parametrize(
    ("state", "more", "code", "words"),
    [
        ("refused", {"reason": "of 2030"}, 69, ("does not know this ROCr runtime", "of 2030")),
        ("not_drained", {}, 75, ("did not end in time", "waits for the host", "--drain-timeout")),
        ("not_drained", {"reason": "told"}, 75, ("did not end in time", "told")),
        ("not_finished", {}, 75, ("captured launch did not end", "another kernel", "--kernel-timeout")),
        ("capturing", {}, 75, ("ended while its memory was being captured", "earlier launch")),
        ("failed", {"reason": "told"}, 70, ("the capture tool failed", "told")),
        (
            "failed",
            {"needed_bytes": 900, "free_bytes": 100, "output": "/full"},
            69,
            ("no space left", "takes up to 900 bytes, 100 are free in /full", "--compress"),
        ),
        (
            "failed",
            {"needed_bytes": 0, "output": "/full", "reason": "disk is full"},
            69,
            ("no space left", "disk is full, 0 are free in /full"),
        ),
    ],
)
def test_what_could_not_be_captured_is_told_with_its_exit_code(tmp_path, state, more, code, words):
    found = outcome(tmp_path, [("ended", {"launches": 5, "matches": 2}), (state, {"launches": 4, **more})])
    assert (found.state, int(found.exit_code), int(found.error.exit_code)) == (state, code, code)
    assert (found.matches, found.launches) == (2, 9)
    told = found.error.one_line()
    for one in words:
        assert one in told
    # A program that failed is told first, whatever came of the capture.
    failed = outcome(tmp_path, [], exit_status=3)
    assert (failed.state, int(failed.exit_code)) == (state, 76)
    assert "exited with status 3" in failed.fact
    assert found.fact in failed.fact


def test_without_the_tool_nothing_is_known_of_launches(tmp_path):
    found = outcome(tmp_path, [])
    assert (found.state, int(found.exit_code), found.matches, found.launches) == ("not_loaded", 69, 0, 0)


@pytest.mark.parametrize(
    ("kernels", "matches", "asked", "fact", "nearest"),
    [
        ((), 0, {"kernel": "x"}, "the program launched no kernel", ()),
        (("a()",), 1, {"dispatch": 4}, "there was 1 launch, numbered from 0, and --dispatch 4", ()),
        (
            ("a()",),
            3,
            {"kernel": "a", "dispatch": 3},
            "there were 3 launches of a kernel like 'a', numbered from 0, and --dispatch 3",
            (),
        ),
        (NAMES, 0, {"kernel": "scal"}, "none of 5 kernels has a name like 'scal'; the nearest", NAMES[1:2]),
        (("zzz()",), 0, {"kernel": "scal"}, "none of 1 kernels has a name like 'scal'", ()),
    ],
)
@pytest.mark.parametrize("state", ["ended", "loaded"])
def test_no_match_says_what_there_was(tmp_path, state, kernels, matches, asked, fact, nearest):
    found = outcome(tmp_path, [(state, {"matches": matches, "launches": 6})], kernels=kernels, **asked)
    assert (found.state, int(found.exit_code), found.error) == ("no_match", 1, None)
    assert (found.matches, found.launches) == (matches, 6)
    assert fact in found.fact
    assert found.nearest[: len(nearest)] == nearest
    assert bool(found.nearest) == bool(nearest)


# The folder of a capture.


def capture_in(folder, mark, *, whole=True):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dispatch.json").write_text(mark)
    if whole:
        (folder / "rpl_capture_complete").write_text(mark)


def marks(tmp_path):
    """Of each folder beside the captures': what stands in it."""
    return {
        path.name: (path / "dispatch.json").read_text() if (path / "dispatch.json").exists() else ""
        for path in tmp_path.iterdir()
    }


def test_an_older_capture_comes_back_unless_a_whole_one_takes_its_place(tmp_path):
    place = tmp_path / "out"
    capture_in(place, "first")
    with output_folder(place, replace=True) as folder:
        assert folder == place
        assert marks(tmp_path) == {"out.before": "first"}
        capture_in(folder, "second")
    assert marks(tmp_path) == {"out": "second"}
    for number in range(3):  # each that was cut short stays, by its number
        with output_folder(place, replace=True) as folder:
            capture_in(folder, f"part {number}", whole=False)
    parts = {"out.incomplete": "part 0", "out.incomplete-2": "part 1", "out.incomplete-3": "part 2"}
    assert marks(tmp_path) == {"out": "second", **parts}
    with output_folder(place, replace=True):
        pass  # nothing came
    assert marks(tmp_path) == {"out": "second", **parts}
    # What is beside it is never written over.
    capture_in(tmp_path / "out.before", "mine")
    with output_folder(place, replace=True) as folder:
        assert marks(tmp_path)["out.before-2"] == "second"
        capture_in(folder, "third")
    assert marks(tmp_path) == {"out": "third", "out.before": "mine", **parts}


def test_a_new_or_an_empty_folder_needs_no_leave(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "deep/er"):
        with output_folder(tmp_path / name, replace=False) as folder:
            assert folder.parent.is_dir()
