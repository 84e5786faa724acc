"""The files of a session are held against the hashes in its ledger."""

from __future__ import annotations

import hashlib

import pytest

from rpl_core.documents import to_json
from rpl_optimize.contracts import BuildPart, CandidatePart, JudgementPart, OptimizeDocument
from rpl_optimize.ledger.lines import Ledger
from rpl_optimize.ledger.lines import LedgerEvent as Event
from rpl_optimize.ledger.session_files import digest_of_recording, growing_files, sign, verify_session_files

from .conftest import STARTED

FILES = {"original/app.hip": b"plain", "candidates/001/app.hip": b"changed", "candidates/001/app": b"program"}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def session(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    program = BuildPart(commands=(), binary="candidates/001/app", binary_sha256=sha256(b"program"))
    proposed = {"kernel": "k", "proposer": "rules", "summary": "", "source_sha256": sha256(b"changed")}
    judgement = JudgementPart(verdict="rejected", stage="equivalence", reason="other results")
    with Ledger.create(tmp_path / "ledger.jsonl") as ledger:
        ledger.append(Event.SESSION_STARTED, {**STARTED, "source_sha256": sha256(b"plain")})
        ledger.append(Event.PROPOSED, {"candidate": 1, **proposed, "source": "candidates/001/app.hip"})
        ledger.append(Event.BUILT, {"candidate": 1, "build": program})
        ledger.append(Event.ROLLED_BACK, {"candidate": 1, "verdict": "rejected", "reason": "other results"})
    candidate = CandidatePart(number=1, **proposed, judgement=judgement)
    document = OptimizeDocument(
        schema_version="1.0",
        command=("./app",),
        source="app.hip",
        source_sha256=sha256(b"plain"),
        proposer="rules",
        state="running",
        candidates=(candidate,),
    )
    (tmp_path / "optimize.json").write_bytes(to_json(document).encode())
    return tmp_path


def test_untouched_files_agree(session) -> None:
    files = verify_session_files(session)
    assert (files.problems, files.checked) == ([], 4)


@pytest.mark.parametrize(("line", "name"), list(enumerate(FILES, 1)))
def test_a_changed_or_missing_file_is_named_with_its_line(session, line, name) -> None:
    (session / name).write_bytes(b"other")
    assert verify_session_files(session).problems == [(line, f"{name} is not the recorded one")]
    (session / name).unlink()
    assert verify_session_files(session).problems == [
        (line, f"{name} can't be read: No such file or directory")
    ]


def test_a_result_that_the_ledger_does_not_give(session, rpl_cli) -> None:
    path = session / "optimize.json"
    path.write_text(path.read_text().replace('"rejected"', '"accepted"'))
    assert verify_session_files(session).problems == [(4, "optimize.json says something else of candidate 1")]
    path.write_text("{")
    assert "optimize.json can't be read" in verify_session_files(session).problems[0][1]
    outcome = rpl_cli("ledger", "verify", str(session)).assert_exit(1)
    assert "line 4: optimize.json can't be read" in outcome.stdout


def test_a_ledger_that_lies_alone_has_no_files(session) -> None:
    for name in FILES:
        (session / name).unlink()
    (session / "original").rmdir()
    assert verify_session_files(session).checked == 0


def _record(session):
    """A baseline whose recording the ledger knows."""
    profile = session / "baselines" / "001" / "profile"
    (profile / "artifacts").mkdir(parents=True)
    (profile / "run.json").write_text("{}")
    (profile / "artifacts" / "trace.db").write_text("times")
    data = {"number": 1, "directory": "baselines/001", "source_sha256": sha256(b"plain")}
    with Ledger.open_for_append(session / "ledger.jsonl") as ledger:
        hashes = {"baselines/001/profile": digest_of_recording(profile)}
        ledger.append(Event.BASELINE_PROFILED, {**data, "recordings": hashes})
    return profile


def test_a_recording_is_the_one_that_was_made(session) -> None:
    profile = _record(session)
    assert verify_session_files(session).problems == []
    changed = [(5, "the recording baselines/001/profile is not the one that was made")]
    for spoil in (
        lambda: (profile / "artifacts" / "trace.db").write_text("other"),
        lambda: (profile / "artifacts" / "more.db").write_text(""),
        lambda: (profile / "run.json").rename(profile / "other.json"),
    ):
        before = {path: path.read_bytes() for path in profile.rglob("*") if path.is_file()}
        spoil()
        assert verify_session_files(session).problems == changed
        for path in [path for path in profile.rglob("*") if path.is_file()]:
            path.unlink()
        for path, content in before.items():
            path.write_bytes(content)
    (profile / "artifacts" / "trace.db").unlink()
    (profile / "run.json").unlink()
    (profile / "artifacts").rmdir()
    profile.rmdir()
    assert "can't be read: No such file or directory" in verify_session_files(session).problems[0][1]


def test_a_signature_is_one_of_this_key_over_all_lines(session, rpl_cli, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("keys")
    key, other, short = (folder / name for name in ("key", "other", "short"))
    key.write_bytes(b"k" * 32)
    other.write_bytes(b"o" * 32)
    short.write_bytes(b"s" * 31)
    verify = ("ledger", "verify", str(session), "--key")
    assert "it is not signed" in rpl_cli(*verify, str(key)).assert_exit(1).stdout
    with Ledger.open_for_append(session / "ledger.jsonl") as ledger:
        sign(ledger.path, key.read_bytes(), ledger.entries, ledger.last_sha256)
    assert "signature: made with this key" in rpl_cli(*verify, str(key)).stdout
    assert "was not made with this key" in rpl_cli(*verify, str(other)).assert_exit(1).stdout
    rpl_cli(*verify, str(short)).assert_exit(64)
    rpl_cli(*verify, str(folder / "none")).assert_exit(69)
    lines = (session / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (session / "ledger.jsonl").write_bytes(b"".join(lines[:-1]))
    assert "another end than this one with 3" in rpl_cli(*verify, str(key)).assert_exit(1).stdout


def test_what_a_proposer_keeps_is_bound_as_far_as_it_had_grown(session) -> None:
    exchanges = session / "exchanges.jsonl"
    exchanges.write_bytes(b'{"reply": 1}\n')
    proposed = {"kernel": "k", "proposer": "llm", "summary": "", "source_sha256": sha256(b"changed")}
    with Ledger.open_for_append(session / "ledger.jsonl") as ledger:
        ledger.append(Event.PROPOSED, {"candidate": 2, **proposed, "records": growing_files(session)})
    assert verify_session_files(session).problems == []
    exchanges.write_bytes(b'{"reply": 1}\n{"reply": 2}\n')
    found = verify_session_files(session)
    assert found.problems == []
    assert found.not_bound == ("exchanges.jsonl behind its first 13 bytes",)
    for changed in (b'{"reply": 3}\n{"reply": 2}\n', b'{"reply": 1}', b""):
        exchanges.write_bytes(changed)
        assert verify_session_files(session).problems == [
            (5, "the beginning of exchanges.jsonl is not the recorded one")
        ]
    exchanges.unlink()
    assert "exchanges.jsonl can't be read" in verify_session_files(session).problems[0][1]
