"""Find the ledger that a user means."""

from __future__ import annotations

from pathlib import Path

from rpl_core.errors import MissingError
from rpl_optimize.ledger.writer import FILE_NAME


def ledger_path(path: Path) -> Path:
    """The ledger at ``path``: the file itself, or the one in a session's directory."""
    found = path / FILE_NAME if path.is_dir() else path
    if not found.exists():
        raise MissingError(
            f"there is no ledger {found}", next_step="name a ledger, or the directory of an optimization"
        )
    return found
