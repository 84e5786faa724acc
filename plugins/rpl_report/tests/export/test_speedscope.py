"""``rpl export --format speedscope`` against the facts of the viewer's published schema."""

from __future__ import annotations

import json

import pytest

from rpl_testkit.fixtures import Launch


def _check(document: dict) -> None:
    """What speedscope.app/file-format-schema.json asks of an evented profile, and its importer of events."""
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert all(isinstance(frame["name"], str) for frame in document["shared"]["frames"])
    frames = len(document["shared"]["frames"])
    for profile in document["profiles"]:
        assert profile["type"] == "evented"
        assert profile["unit"] in ("none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes")
        last, stack = profile["startValue"], []
        for event in profile["events"]:
            assert 0 <= event["frame"] < frames
            assert event["at"] >= last
            last = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert event["type"] == "C"
                assert stack.pop() == event["frame"]
        assert not stack
        assert last <= profile["endValue"]


def _durations(document: dict, profile: dict) -> dict[str, int]:
    sums: dict[str, int] = {}
    opened = 0
    for event in profile["events"]:
        if event["type"] == "O":
            opened = event["at"]
        else:
            name = document["shared"]["frames"][event["frame"]]["name"]
            sums[name] = sums.get(name, 0) + event["at"] - opened
    return sums


def test_profiles_hold_the_recorded_times(demo_run, recorded_work, rpl_cli):
    document = rpl_cli("export", "--format", "speedscope", demo_run).assert_ok().json()
    _check(document)
    streams = [p for p in document["profiles"] if p["name"] != "critical path"]
    assert len(streams) == len({row[3] for row in recorded_work})
    found: dict[str, int] = {}
    for profile in streams:
        for name, ns in _durations(document, profile).items():
            found[name] = found.get(name, 0) + ns
    expected: dict[str, int] = {}
    for name, begin, end, _ in recorded_work:
        expected[name] = expected.get(name, 0) + end - begin
    assert found == expected


def test_critical_path_is_a_profile_of_its_length(demo_run, rpl_cli):
    dag = json.loads((demo_run / "dag.json").read_text())
    document = rpl_cli("export", "--format", "speedscope", demo_run).assert_ok().json()
    profile = document["profiles"][document["activeProfileIndex"]]
    assert profile["name"] == "critical path"
    assert sum(_durations(document, profile).values()) == dag["critical_path_ns"]


def test_overlapping_kernels_of_one_stream_are_not_nested(rpl_make_rocpd, rpl_cli):
    recording = rpl_make_rocpd([("a", 100, 500), ("b", 200, 300), ("c", 250, 700), ("a", 700, 700)])
    document = rpl_cli("export", "--format", "speedscope", recording).assert_ok().json()
    _check(document)
    depth = max(
        sum(1 if e["type"] == "O" else -1 for e in profile["events"][:i])
        for profile in document["profiles"]
        for i in range(len(profile["events"]) + 1)
    )
    assert depth == 1
    assert len(document["profiles"]) == 1 + 3


@pytest.mark.parametrize("name", ["</script>", "\x1b[0m", 'quote"', "\u2028", "n" * 2048])
def test_any_name_is_valid_json(name, rpl_make_rocpd, rpl_cli):
    recording = rpl_make_rocpd([Launch(name, 100, 200)])
    document = rpl_cli("export", "--format", "speedscope", recording).assert_ok().json()
    _check(document)
    assert "\x1b" not in json.dumps(document, ensure_ascii=False)
