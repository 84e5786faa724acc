"""The files of a session are held against the hashes in its ledger."""

from __future__ import annotations

import hashlib

import pytest

from rpl_core.documents.bundle import to_json
from rpl_optimize.contracts.optimize import BuildPart, CandidatePart, JudgementPart, OptimizeDocument
from rpl_optimize.ledger.events import LedgerEvent as Event
from rpl_optimize.ledger.session_files import verify_session_files
from rpl_optimize.ledger.writer import Ledger

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
