"""The run directory: what `rpl profile` leaves behind and every later command reads.

Here are the names inside of it and of itself, and the contract that its manifest keeps.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.interfaces.document import DocumentContract

if TYPE_CHECKING:
    from rpl_core.contracts.common import RunManifest

MANIFEST = "run.json"
MAX_MANIFEST_BYTES = 32 << 20
ARTIFACTS = "artifacts"  # counter passes, logs, thread traces
RECORDINGS = "recordings"  # copies of what was analysed
DOCUMENTS = ("profile.json", "roofline.json", "dag.json", "analysis.json")
LATEST = "latest"

_NAME = re.compile(r"[^A-Za-z0-9._-]+")


class RunContract(DocumentContract):
    name = "run"
    summary = "the manifest of a run directory"

    def model(self) -> type[RunManifest]:
        from rpl_core.contracts.common import RunManifest

        return RunManifest


def run_name(command: tuple[str, ...], now: datetime) -> str:
    """``<utc>-<application>``, for example ``20261120T104501Z-my_app``; ``now`` is in UTC."""
    program = Path(command[0]).name if command else "run"
    safe = _NAME.sub("_", program).strip("._")[:60] or "run"
    return f"{now:%Y%m%dT%H%M%SZ}-{safe}"


def is_run_directory(path: Path) -> bool:
    return (path / MANIFEST).is_file()
