"""The directory of an optimizer's session: the names inside it, and the document that sums it up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import MissingError
from rpl_core.interfaces.document import DocumentContract

if TYPE_CHECKING:
    from rpl_optimize.contracts import OptimizeDocument

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


class OptimizeContract(DocumentContract):
    """``optimize.json``. Its model, and pydantic with it, is imported when somebody looks."""

    name = "optimize"
    summary = "an optimization"

    def model(self) -> type[OptimizeDocument]:
        from rpl_optimize.contracts import OptimizeDocument

        return OptimizeDocument

    def found_in(self, directory: Path) -> str:
        measured = directory / baseline_name(1) / "profile"
        return (
            f"see it with `rpl ledger show {directory}`; "
            f"the runs that it measured are below, such as {measured}"
        )
