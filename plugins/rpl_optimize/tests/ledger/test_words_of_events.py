"""What ``rpl ledger`` tells of a ledger: one line for each kind of event, written out by hand, read back.

Data of any other shape, as a stranger's ledger may hold it, is left out and never ends in an error.
"""

from __future__ import annotations

import json

import pytest

from rpl_optimize.cli.ledger import candidate_of, summary_of
from rpl_optimize.ledger.lines import FIRST_PREVIOUS, make_entry
from rpl_optimize.ledger.lines import LedgerEvent as Event

from .conftest import blank_evidence, candidate_events, note

LOOK = {"decision": "accepted", "pairs": 14, "ratio": 0.91234567}
WORDS = [
    (
        Event.SESSION_STARTED,
        {"source": "app.hip", "proposer": "rules", "tool_version": "0.1", "options": {}},
        "source app.hip, proposer rules, tool version 0.1",
    ),
    (Event.RESUMED, {"tool_version": "0.2", "source_sha256": "11"}, "tool version 0.2"),
    (
        Event.BASELINE_PROFILED,
        {"number": 2, "directory": "baseline/2", "runs": 5, "origin": "measured", "makespan_ns": 1.0},
        "number 2, directory baseline/2, runs 5, origin measured",
    ),
    (Event.TARGET_CHOSEN, {"kernel": "k", "reason": "it takes most"}, "kernel k, reason it takes most"),
    (Event.TARGET_CHOSEN, {"kernel": None, "reason": "none is worth it"}, "reason none is worth it"),
    (
        Event.PROPOSED,
        {"kernel": "k", "proposer": "rules", "summary": "unroll", "source": "a"},
        "kernel k, proposer rules, summary unroll",
    ),
    (
        Event.CONTINUED,
        {"under_way": "measurement", "pairs": 3, "repeated_pairs": 0, "directory": "d", "finished": []},
        "under way measurement, pairs 3, repeated pairs 0, directory d",
    ),
    (
        Event.PLANNED,
        {"stage": "placement", "most_runs": 40, "run_s": 0.123456, "padding_bytes": 64, "seed": 7},
        "stage placement, most runs 40, run s 0.123, padding bytes 64, seed 7",
    ),
    (Event.ROLLED_BACK, {"verdict": "rejected", "reason": "slower"}, "verdict rejected, reason slower"),
    (Event.WRITTEN, {"path": "/a/b.hip", "backup": None}, "path /a/b.hip"),
    (Event.WRITTEN, {"path": "b.hip", "backup": "b.hip.rpl-backup"}, "path b.hip, backup b.hip.rpl-backup"),
    (
        Event.FINISHED,
        {"termination_reason": "time_budget", "verdict": "inconclusive", "termination_detail": "600 s"},
        "termination reason time_budget, verdict inconclusive, termination detail 600 s",
    ),
    (Event.RECOVERED, {"dropped_bytes": 31, "dropped_sha256": "11"}, "dropped bytes 31"),
    (Event.NOTE, {"text": "  two \n lines ", "details": {}}, "text two lines"),
    (
        Event.JUDGED,
        {"judgement": {"verdict": "rejected", "stage": "build", "reason": "it does not compile"}},
        "rejected at build: it does not compile",
    ),
    (Event.SOURCE_GUARDED, {"guards": [{"guard": "a", "passed": True, "reason": "well"}] * 3}, "3 passed"),
    (
        Event.BINARY_GUARDED,
        {
            "guards": [
                {"guard": "lds", "passed": False, "reason": "more of it"},
                {"guard": "abi", "passed": True, "reason": "the same"},
                {"guard": "isa", "passed": None, "reason": "no disassembler"},
            ]
        },
        "lds: more of it; isa: no disassembler",
    ),
    (Event.BUILT, {"build": {"problem": "no compiler", "binary": "x", "wall_s": 1.0}}, "no compiler"),
    (Event.BUILT, {"build": {"problem": None, "binary": "c/app", "wall_s": 12.3456}}, "c/app in 12.3 s"),
    (
        Event.EQUIVALENCE_CHECKED,
        {"checks": [{"check": "files", "verdict": "equal"}, {"check": "replay", "verdict": "not_run"}]},
        "files: equal, replay: not_run",
    ),
    (Event.EQUIVALENCE_CHECKED, {"checks": []}, "no check"),
    (Event.MEASURED, {"measurement": {"look": LOOK}}, "accepted after 14 pairs, new / base 0.9123"),
    (Event.REMEASURED, {"measurement": {"look": LOOK, "problem": "it crashed"}}, "it crashed"),
    (
        Event.TIMED_ALONE,
        {"measurement": {"look": {**LOOK, "ratio": None}}},
        "accepted after 14 pairs, new / base unknown",
    ),
    (
        Event.MODELLED,
        {"modelled": {"base": 1234.5678, "new": 1000.0, "unit": "cycles per SIMD"}},
        "1.23e+03 to 1e+03 cycles per SIMD (modelled)",
    ),
    (Event.MODELLED, {"modelled": {"base": 1.0, "problem": "no launch"}}, "no launch"),
    (
        Event.PLACED,
        {
            "placement": {
                "shifts": [
                    {"padding_bytes": 64, "measurement": {"problem": "it hung"}},
                    {"padding_bytes": 128, "measurement": {"look": LOOK}},
                ]
            }
        },
        "+64 bytes: it hung; +128 bytes: accepted after 14 pairs, new / base 0.9123",
    ),
    (Event.PLACED, {"placement": {"problem": "no shifted build", "shifts": []}}, "no shifted build"),
    (
        Event.ACCEPTED,
        {"measured_gain": 0.2, "predicted_gain": 1e-7, "kernel_gain": 0.123456},
        "measured gain 0.2, predicted gain 1e-07, kernel gain 0.123",
    ),
]


def entry_of(event, data):
    return make_entry(1, "2026-11-21T10:00:00Z", event, data, FIRST_PREVIOUS)


@pytest.mark.parametrize(("event", "data", "words"), WORDS)
def test_each_event_is_told_in_one_line(event, data, words):
    said = summary_of(entry_of(event, data))
    assert said == words


def test_a_long_text_is_cut():
    said = summary_of(entry_of(Event.NOTE, {"text": "word " * 50}))
    assert 90 < len(said) <= 100
    assert said.startswith("text word word")


def test_every_event_has_words():
    assert {event for event, _, _ in WORDS} == set(Event)


@pytest.mark.parametrize("odd", [None, 7, "text", [1, "a", None], {"look": 3, "guard": None}, []])
def test_odd_data_is_told_without_what_is_odd(odd):
    names = {name for _, data, _ in WORDS for name in data}
    for event in Event:
        said = summary_of(entry_of(event, dict.fromkeys(names, odd)))
        assert len(said) <= 100
        assert "\n" not in said
    assert candidate_of(entry_of(Event.NOTE, {"candidate": odd})) == ("7" if odd == 7 else "")


@pytest.fixture
def session(write_ledger):
    """A session that stopped: one candidate without a verdict."""
    return write_ledger([*candidate_events(blank_evidence(), 3), (Event.NOTE, note("said"))])


def test_events_are_shown_in_their_order(session, rpl_cli):
    shown = rpl_cli("ledger", "show", session).assert_ok().stdout.splitlines()
    events = rpl_cli("ledger", "show", session, "--json").assert_ok().json()
    lines = [json.loads(line) for line in session.read_text().splitlines()]
    assert [one["sequence"] for one in events["events"]] == list(range(1, len(lines) + 1))
    assert events["broken"] is None
    assert shown[0].split() == ["LINE", "UTC", "EVENT", "CANDIDATE", "WHAT"]
    for row, told, line in zip(shown[1:], events["events"], lines, strict=True):
        number, utc, event, *rest = row.split()
        assert (int(number), event) == (told["sequence"], told["event"])
        assert told["time_utc"].startswith(utc)
        assert told["data"] == line["data"]
        expected = summary_of(entry_of(Event(told["event"]), told["data"])).split()
        candidate = told["data"].get("candidate")
        # The last column is cut where the line ends.
        words = [*([str(candidate)] if candidate is not None else []), *expected]
        assert rest[: len(words) - 1] == words[: len(rest)][: len(words) - 1] or rest[-1].endswith("...")


@pytest.mark.parametrize("damage", ["torn", "changed"])
def test_of_a_damaged_ledger_the_lines_before_the_damage_are_shown(session, rpl_cli, damage):
    content = session.read_bytes()
    lines = content.splitlines(keepends=True)
    if damage == "torn":
        session.write_bytes(content[:-9])
    else:
        session.write_bytes(b"".join([*lines[:3], lines[3].replace(b"a", b"b", 1), *lines[4:]]))
    told = rpl_cli("ledger", "show", session, "--json")
    assert told.exit_code == (0 if damage == "torn" else 65)
    shown = rpl_cli("ledger", "show", session)
    whole = len(lines) - 1 if damage == "torn" else 3
    assert shown.exit_code == told.exit_code
    assert len(shown.stdout.splitlines()) == 1 + whole
    assert shown.stderr.count("\n") == 1
    if damage == "torn":
        assert len(told.json()["events"]) == whole
        assert told.json()["broken"]


def test_a_check_tells_every_verdict_and_what_is_missing(session, rpl_cli, tmp_path):
    said = rpl_cli("ledger", "verify", session)
    assert said.exit_code == 0, said.stdout
    count = len(session.read_text().splitlines())
    (judged,) = (
        line["data"]["judgement"]
        for line in map(json.loads, session.read_text().splitlines())
        if line["event"] == "judged"
    )
    assert said.stdout.splitlines() == [
        f"chain: {count} lines, each with the hash of the one before it",
        f"candidate 3: {judged['verdict']} at {judged['stage']}: the same by its evidence",
        "the session is not finished: lines that would follow may be missing",
        "everything is as recorded",
    ]
    document = rpl_cli("ledger", "verify", session, "--json").json()
    assert (document["lines"], document["agrees"], document["finished"]) == (count, True, False)
    (verdict,) = document["verdicts"]
    assert (verdict["candidate"], verdict["differences"]) == (3, [])
    assert verdict["recorded"] == verdict["replayed"]
    assert document["last_sha256"] == json.loads(session.read_text().splitlines()[-1])["sha256"]
