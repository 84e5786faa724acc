"""Whatever is changed in a session afterwards shows: each file, field of the result and figure of a line.

One session is measured; copies of it are tampered with at every place that there is.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rpl_core.plugins.discovery import PluginSelection
from rpl_core.plugins.host import create_host
from rpl_optimize.contracts import FinishedData
from rpl_optimize.ledger.lines import FIRST_PREVIOUS, LedgerEvent, encode, make_entry, read_ledger
from rpl_optimize.ledger.session_files import seed_after, verify_session_files
from rpl_optimize.ledger.verify import verify_ledger
from rpl_optimize.loop import recorded_session
from rpl_optimize.loop.recorded_session import RecordedSession, verify_recorded_session
from rpl_testkit.fixtures import CommandLine

pytestmark = pytest.mark.clang


@pytest.fixture(scope="module")
def finished(accepted_session) -> Path:
    return accepted_session.root


@pytest.fixture(scope="module")
def readers():
    offered = create_host(PluginSelection(), config={}).catalog.readers().contributions
    return lambda: offered


@pytest.fixture(scope="module", autouse=True)
def _read_once():
    """Recordings stay as they are here; each is read once for all changes of other places."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("stored_sides", "predicted_gain"):
            patch.setattr(recorded_session, name, cache(getattr(recorded_session, name)))
        yield


@pytest.fixture
def session(finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "session", symlinks=True))


def files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())


def test_nothing_is_left_unbound(finished, readers, monkeypatch) -> None:
    found = verify_session_files(finished)
    assert (found.problems, found.not_bound) == ([], ())
    again = verify_recorded_session(finished, readers)
    assert (again.problems, again.notes) == ([], [])
    outcome = CommandLine(monkeypatch)("ledger", "verify", finished).assert_ok()
    assert "not bound" not in outcome.stdout


def test_a_change_of_any_file_shows(finished, session, readers) -> None:
    unnoticed = []
    names = [path.relative_to(finished) for path in files(finished)]
    assert {"request.json", "original/smooth.hip"} <= {str(name) for name in names}
    for name in names:
        path = session / name
        if name.name in ("ledger.jsonl", "optimize.json"):
            continue  # see below
        content = path.read_bytes()
        others = (content[:-1] if content else b"x", None) if name.suffix in (".json", ".hip") else ()
        for changed in (content + b"\n", *others):
            path.unlink() if changed is None else path.write_bytes(changed)
            if not verify_session_files(session).problems:
                unnoticed.append(str(name))
            path.write_bytes(content)
    assert unnoticed == []
    assert verify_session_files(session).problems == []


def test_a_measurement_that_was_deleted_shows_though_its_session_had_not_ended(session) -> None:
    """Else who strikes a session could have a measurement begin anew as if it had never begun."""
    ledger = session / "ledger.jsonl"
    raw = ledger.read_bytes().splitlines(keepends=True)
    lines = [json.loads(line) for line in raw]
    last = max(n for n, line in enumerate(lines) if line["event"] == "planned")
    ledger.write_bytes(b"".join(raw[: last + 1]))
    begun = [
        line["data"] for line in lines[: last + 1] if line["event"] == "planned" and line["data"]["directory"]
    ]
    assert len(begun) > 1
    for plan in begun:
        shutil.move(session / plan["directory"], session / "away")
        told = [problem for _, problem in verify_session_files(session).problems]
        assert [one for one in told if one.startswith(f"{plan['directory']}, the {plan['stage']} of")]
        shutil.move(session / "away", session / plan["directory"])
    first, second = (session / plan["directory"] / "comparison.json" for plan in begun[:2])
    shutil.copy(second, first)
    assert any("another measurement" in problem for _, problem in verify_session_files(session).problems)


@pytest.mark.parametrize(
    "name", ["new.txt", "candidates/new.txt", "candidates/009/x/new.txt", "baselines/009/run.json"]
)
def test_a_file_that_came_later_is_named(session, name, monkeypatch) -> None:
    (session / name).parent.mkdir(parents=True, exist_ok=True)
    (session / name).write_text("later")
    outcome = CommandLine(monkeypatch)("ledger", "verify", session).assert_ok()
    (line,) = [line for line in outcome.stdout.splitlines() if line.startswith("not bound to the chain: ")]
    assert name.startswith(line.partition(": ")[2])
    told = CommandLine(monkeypatch)("ledger", "verify", session, "--json").json()
    assert len(told["not_bound"]) == 1


def test_a_link_in_place_of_a_file_shows(session) -> None:
    for name in ("request.json", "candidates/001/build", "baselines/001/profile"):
        path = session / name
        path.rename(session.parent / path.name)
        path.symlink_to(session.parent / path.name)
    told = "; ".join(problem for _, problem in verify_session_files(session).problems)
    assert "candidates/001/build" in told


# --- the result ----------------------------------------------------------------------------------------


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Each place in a JSON value: members of lists by their first, middle and last."""
    if isinstance(value, dict):
        for name in value:
            yield from leaves(value[name], (*place, name))
    elif isinstance(value, list) and value:
        for number in sorted({0, len(value) // 2, len(value) - 1}):
            yield from leaves(value[number], (*place, number))
    if place:
        yield place


def at(value: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        value = value[step]
    return value


def changes(value: Any) -> list[Any]:
    """Other values in its place, of the same kind first."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, (int, float)):
        return [value * 1.01 + 0.001, None]
    if isinstance(value, str):
        return [f"{value}x", None]
    if value is None:
        return [0.5, "x"]
    return [[], None] if value else [["x"]]


def put(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    changed = copy.deepcopy(value)
    at(changed, place[:-1])[place[-1]] = new
    return changed


def recorded(root: Path, readers) -> RecordedSession:
    """Ready for the comparison with the document."""
    whole = RecordedSession(root, readers)
    for entry in read_ledger(root / "ledger.jsonl"):
        whole.take(entry)
    assert whole.problems == []
    return whole


def test_a_change_of_any_field_of_the_result_shows(session, readers) -> None:
    path, whole = session / "optimize.json", recorded(session, readers)
    document = json.loads(path.read_text())
    places = list(leaves(document))
    assert len(places) > 60
    unnoticed = []
    for place in places:
        for new in changes(at(document, place)):
            path.write_text(json.dumps(put(document, place, new)))
            whole.problems.clear()
            whole.end(99)
            if not whole.problems:
                unnoticed.append((place, new))
        holder = copy.deepcopy(document)
        del at(holder, place[:-1])[place[-1]]
        path.write_text(json.dumps(holder))
        whole.problems.clear()
        whole.end(99)
        if not whole.problems:
            unnoticed.append((place, "absent"))
    assert unnoticed == []


def test_what_readers_take_differently_shows(session, readers) -> None:
    path, whole = session / "optimize.json", recorded(session, readers)
    text = path.read_text()
    for changed in (
        text.replace('"verdict": "accepted"', '"verdict": "rejected", "verdict": "accepted"'),
        text.replace('"state": "finished"', '"state": "finished", "measured": 0.5'),
        text.replace('"backup": null', '"backup": NaN'),
        text[:-3],
        "[]",
        "",
    ):
        assert changed != text
        path.write_text(changed)
        whole.problems.clear()
        whole.end(99)
        assert whole.problems, changed[:200]
    path.unlink()
    whole.end(99)
    assert "can't be read" in whole.problems[-1][1]


def test_the_command_ends_with_1_for_an_edited_gain(session, monkeypatch) -> None:
    path = session / "optimize.json"
    document = json.loads(path.read_text())
    document["candidates"][1]["kernel_gain"] = 0.4
    path.write_text(json.dumps(document))
    outcome = CommandLine(monkeypatch)("ledger", "verify", session).assert_exit(1)
    assert "optimize.json says candidates[1].kernel_gain is 0.4, it is 0." in outcome.stdout
    shutil.rmtree(session / "original")
    assert "optimize.json" in CommandLine(monkeypatch)("ledger", "verify", session).assert_exit(1).stdout


# --- a chain that somebody forged ----------------------------------------------------------------------

#: What no evidence in the session gives: words and plans of the caller, machines and clocks, and free text.
FREE = {
    "session_started": {"tool_version", "command", "proposer", "policy", "options", "source"},
    "baseline_profiled": {"number", "runs", "build", "device", "directory"},
    "target_chosen": {"reason", "base_cv", "rule"},
    "proposed": None,
    "source_guarded": None,
    "built": None,
    "binary_guarded": None,
    "equivalence_checked": None,
    "note": None,
    "planned": {"fewest_runs", "most_runs", "run_s", "padding_bytes"},
    "measured": {"architecture_guards"},
    "judged": {"policy"},
    "rolled_back": {"reason"},
    "written": {"path", "before_sha256", "backup"},
    "finished": {"termination_reason", "termination_detail", "source_sha256"},
}
#: Of these free ones all that is not told twice: what stands in the result too must still be the result's.
IN_THE_RESULT = {"command", "source", "proposer", "termination_reason", "termination_detail", "path"}


def forged(entries: list[Any], number: int, data: dict[str, Any]) -> list[bytes]:
    """The chain with other data at one line, and all that follows from hashes made anew.

    The forger draws the seeds of plans anew, and puts what was measured into the evidence too.
    """
    previous, lines, seed = FIRST_PREVIOUS, [], None
    stages = {LedgerEvent.MEASURED: "measurement", LedgerEvent.REMEASURED: "remeasurement"}
    told: dict[str, Any] = {}
    for index, entry in enumerate(entries):
        new = copy.deepcopy(data if index == number else dict(entry.data))
        if entry.event is LedgerEvent.PLANNED:
            seed = new["seed"] = seed_after(previous)
        elif entry.event in stages and isinstance(new.get("measurement"), dict):
            new["measurement"]["seed"] = seed
            told[stages[entry.event]] = new["measurement"]
        elif entry.event is LedgerEvent.JUDGED and index != number:
            new["evidence"].update(copy.deepcopy(told))
        if entry.event is LedgerEvent.JUDGED:
            told = {}
        made = make_entry(index + 1, entry.time_utc, entry.event, new, previous)
        lines.append(encode(made))
        previous = made.sha256
    return lines


def problems_of(root: Path, readers) -> list[str]:
    """All but those that only the seeds tell, which any forgery has where something was measured after it."""
    from rpl_core.errors import RplError

    try:
        verified = verify_ledger(root / "ledger.jsonl")
        found = [problem for _, problem in verified.problems]
        found += [text for verdict in verified.verdicts for text in verdict.differences]
        found = [problem for problem in found if "order" not in problem]
        if found:
            return found
        found += [problem for _, problem in verify_recorded_session(root, readers).problems]
        found += [problem for _, problem in verify_session_files(root).problems]
    except RplError as error:
        return [error.fact]
    return [problem for problem in found if "order" not in problem]


@pytest.mark.parametrize(
    ("event", "place", "word"),
    [
        ("accepted", ("predicted_gain",), "the predicted gain of candidate 2"),
        ("remeasured", ("measurement", "base_median_ns"), "base_median_ns"),
        ("measured", ("measurement", "base_ns", 0), "base_ns is not what the recordings"),
        ("baseline_profiled", ("makespan_ns",), "makespan_ns of baseline"),
        ("target_chosen", ("ceiling_gain",), "the ceiling of"),
    ],
)
def test_a_forged_figure_shows(session, readers, event, place, word) -> None:
    """Each kind once; the long legs try all of them."""
    path = session / "ledger.jsonl"
    entries = list(read_ledger(path))
    number = max(n for n, entry in enumerate(entries) if entry.event.value == event)
    data = put(dict(entries[number].data), place, at(entries[number].data, place) * 1.01)
    if place[-2:-1] == ("base_ns",):
        data["measurement"] = consistent(data["measurement"])
    path.write_bytes(b"".join(forged(entries, number, data)))
    assert any(word in problem for problem in problems_of(session, readers))


def consistent(measurement: dict[str, Any]) -> dict[str, Any]:
    """All that follows from other times, made anew."""
    from rpl_optimize.contracts import MeasurementPart
    from rpl_optimize.measurement.measure import PairTimes, measurement_part, rule_of

    part = MeasurementPart.model_validate(measurement)
    times = PairTimes(tuple(zip(part.base_ns, part.new_ns, strict=True)))
    again = measurement_part(part.kernel, times, rule_of(part.rule), part.directory, seed=part.seed)
    kept = {"guards": part.guards, "origin": part.origin, "look": part.look, "problem": None}
    made = again.model_copy(update=kept).model_dump(mode="json")
    from rpl_measure.sequential import last_look
    from rpl_optimize.measurement.measure import look_part

    look = last_look(again.log_ratios, part.guards, rule_of(part.rule))
    return {**made, "look": None if look is None else look_part(look).model_dump(mode="json")}


def test_any_forgery_before_a_measurement_shows_by_the_order_of_its_pairs(session, readers) -> None:
    entries = list(read_ledger(session / "ledger.jsonl"))
    started = {**entries[0].data, "tool_version": "0.0.0"}
    (session / "ledger.jsonl").write_bytes(b"".join(forged(entries, 0, started)))
    told = "; ".join(problem for _, problem in verify_recorded_session(session, readers).problems)
    assert "were not measured in the order of its seed" in told


@pytest.mark.long
def test_a_forged_chain_shows_by_each_figure(session, readers) -> None:
    path = session / "ledger.jsonl"
    entries = list(read_ledger(path))
    path.write_bytes(b"".join(forged(entries, -1, {})))
    assert problems_of(session, readers) == []  # the forger is good
    unnoticed, tried = [], 0
    for number, entry in enumerate(entries):
        free = FREE.get(entry.event.value, set())
        for place in leaves(dict(entry.data)):
            value = at(entry.data, place)
            if free is None or place[0] in free - IN_THE_RESULT or isinstance(value, (dict, list)):
                continue
            if place[-1] in ("seed", "reason") or "source_guards" in place or "rule" in place:
                continue  # drawn anew by the forger; prose; guards can't be asked again; see the plans' tests
            if (
                entry.event is LedgerEvent.JUDGED
                and place[0] == "evidence"
                and place[1]
                not in (
                    "measurement",
                    "remeasurement",
                )
            ):
                continue  # what the stages recorded, which other tests hold
            tried += 1
            new = changes(value)[0]
            path.write_bytes(b"".join(forged(entries, number, put(dict(entry.data), place, new))))
            if not problems_of(session, readers):
                unnoticed.append((entry.event.value, place, value))
    assert tried > 80
    assert not unnoticed, "\n".join(map(str, unnoticed))


@pytest.mark.parametrize(
    ("time", "word"),
    [
        ("1970-01-01T00:00:00.000000Z", "it was not written in 1970"),
        ("2012-05-01T00:00:00.000000Z", "it was not written in 2012"),
        ("9999-12-31T23:59:59.999999Z", "it was not written in 9999"),
        ("yesterday", "is no time"),
        ("", "is no time"),
        ("2026-13-01T00:00:00.000000Z", "is no time"),
    ],
)
def test_a_line_of_an_impossible_time_fails(session, time, word, monkeypatch) -> None:
    rechained(session, -1, lambda _old: time)
    assert word in CommandLine(monkeypatch)("ledger", "verify", session).assert_exit(1).stdout


def test_a_clock_that_steps_back_is_told_and_fails_nothing(session, monkeypatch) -> None:
    rechained(session, -1, lambda old: f"{int(old[:4]) - 1}{old[4:]}")
    outcome = CommandLine(monkeypatch)("ledger", "verify", session).assert_ok()
    assert "the clock was 3153" in outcome.stdout.replace("3.1536e+07", "31536000")
    told = CommandLine(monkeypatch)("ledger", "verify", session, "--json").assert_ok().json()
    assert [note["line"] for note in told["notes"]] == [
        len((session / "ledger.jsonl").read_bytes().splitlines())
    ]
    assert told["agrees"] is True


def rechained(root: Path, number: int, changed: Any) -> None:
    """The ledger with another time in one of its last lines, behind every plan."""
    entries = list(read_ledger(root / "ledger.jsonl"))
    previous, lines = FIRST_PREVIOUS, []
    for index, entry in enumerate(entries):
        time = changed(entry.time_utc) if index == number % len(entries) else entry.time_utc
        made = make_entry(index + 1, time, entry.event, dict(entry.data), previous)
        lines.append(encode(made))
        previous = made.sha256
    (root / "ledger.jsonl").write_bytes(b"".join(lines))


def test_the_order_is_that_of_the_sequence(session) -> None:
    """A later line with an earlier time stays the later one."""
    rechained(session, -2, lambda _old: "2025-01-01T00:00:00.000000Z")
    verified = verify_ledger(session / "ledger.jsonl")
    assert verified.finished
    assert verified.problems == ()


def test_the_last_line_binds_what_nothing_else_does(finished) -> None:
    *_, last = read_ledger(finished / "ledger.jsonl")
    bound = FinishedData.model_validate(last.data).files
    assert {name.rpartition("/")[2] for name in bound} >= {"build.log", "equivalence"}
