"""Names inside the directory of an optimizer's session."""

from __future__ import annotations

from pathlib import Path

from rpl_core.errors import MissingError

DOCUMENT = "optimize.json"
REQUEST = "request.json"
LEDGER = "ledger.jsonl"
ORIGINAL = "original"
BASELINES = "baselines"
CANDIDATES = "candidates"
RUNS = "runs"
TRIED = "tried-out"  # there while a proposer tries something out


def is_session_directory(path: Path) -> bool:
    return (path / LEDGER).is_file()


def baseline_name(number: int) -> str:
    """Baseline 1 is the user's source; each acceptance makes the next one."""
    return f"{BASELINES}/{number:03d}"


def candidate_name(number: int, repairs: int = 0) -> str:
    suffix = f"-repair{repairs}" if repairs else ""
    return f"{CANDIDATES}/{number:03d}{suffix}"


def fresh(root: Path, name: str) -> Path:
    """``root/name``, or with a counter behind it where an interrupted session left something."""
    path, number = root / name, 2
    while path.exists():
        path = root / f"{name}-again{number}"
        number += 1
    return path


def ledger_path(path: Path) -> Path:
    """The ledger at ``path``: the file itself, or the one in a session's directory."""
    ledger = path / LEDGER if path.is_dir() else path
    if not ledger.exists():
        raise MissingError(
            f"there is no ledger {ledger}", next_step="name a ledger, or the directory of an optimization"
        )
    return ledger
