"""A session's directory: the ledger, the document that sums it up, and copies of every source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core import __version__
from rpl_core.contracts.common import SCHEMA_VERSION
from rpl_core.documents.bundle import to_json
from rpl_core.files.atomic import write_atomic
from rpl_core.files.digest import sha256_of
from rpl_core.text.safety import encodable
from rpl_optimize.contracts.optimize import OptimizeDocument
from rpl_optimize.ledger.events import LedgerEvent
from rpl_optimize.ledger.plans import seed_after
from rpl_optimize.ledger.session_files import bound_by, digest_of_recording, unbound
from rpl_optimize.loop.accept import digest
from rpl_optimize.session_layout import DOCUMENT, ORIGINAL, REQUEST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_core.contracts.common import Part
    from rpl_optimize.ledger.writer import Ledger
    from rpl_optimize.loop.request import OptimizeRequest
    from rpl_optimize.loop.resume import Resumed


@attrs.define(eq=False)
class OptimizeSession:
    """One session in progress. The ledger is the truth; ``optimize.json`` can be made from it again."""

    root: Path
    request: OptimizeRequest
    ledger: Ledger
    original: bytes
    document: OptimizeDocument

    @classmethod
    def start(
        cls, root: Path, request: OptimizeRequest, ledger: Ledger, original: bytes, proposer: str
    ) -> OptimizeSession:
        """Keep a copy of the source and write the first document."""
        session = cls(root, request, ledger, original, _first(request, original, proposer))
        copy = root / ORIGINAL / request.source.name
        copy.parent.mkdir(exist_ok=True)
        write_atomic(copy, original)
        session.save()
        return session

    @classmethod
    def resume(
        cls, root: Path, request: OptimizeRequest, ledger: Ledger, resumed: Resumed, proposer: str
    ) -> OptimizeSession:
        session = cls(root, request, ledger, resumed.original, _first(request, resumed.original, proposer))
        session.follow(resumed)
        return session

    def follow(self, resumed: Resumed) -> None:
        """Make the document again from what the ledger says."""
        ended, written = resumed.finished, resumed.written
        self.update(
            state="running" if ended is None else "finished",
            termination_reason=None if ended is None else ended.termination_reason,
            termination_detail=None if ended is None else ended.termination_detail,
            verdict=None if ended is None else ended.verdict,
            candidates=tuple(resumed.state.candidates),
            accepted_source=None if written is None else written.path,
            backup=None if written is None else written.backup,
            dominance_shifts=tuple(resumed.state.shifts),
        )

    def record_start(self, options: Mapping[str, Any]) -> None:
        self.record(
            LedgerEvent.SESSION_STARTED,
            {
                "tool_version": __version__,
                "command": self.request.told_command,
                "source": str(self.request.source),
                "source_sha256": digest(self.original),
                "proposer": self.document.proposer,
                "policy": self.request.policy,
                "options": options,
                "request_sha256": _hash_of(self.root / REQUEST),
            },
        )

    def record_resumed(self) -> None:
        now = digest(self.request.source.read_bytes())
        self.record(LedgerEvent.RESUMED, {"tool_version": __version__, "source_sha256": now})

    def record(self, event: LedgerEvent, data: Part | Mapping[str, Any]) -> None:
        self.ledger.append(event, data)

    def draw_seed(self) -> int:
        """For the order of what is measured next: from the last line's hash, so that nobody chooses it."""
        return seed_after(self.ledger.last_sha256)

    def update(self, **changes: object) -> None:
        """Change the document and write it at once."""
        self.document = self.document.model_copy(update=changes)
        self.save()

    def files(self) -> Mapping[str, str]:
        """Hashes of everything in the directory that the ledger does not tell of yet."""
        return unbound(self.root, bound_by(self.ledger.path))

    def save(self) -> None:
        write_atomic(self.root / DOCUMENT, to_json(self.document))

    def recordings(self, *directories: Path) -> Mapping[str, str]:
        """Hashes of the recordings that are there, for the ledger."""
        return {self.relative(path): digest_of_recording(path) for path in directories if path.is_dir()}

    def relative(self, path: Path) -> str:
        return str(path.relative_to(self.root))


def _hash_of(path: Path) -> str | None:
    return sha256_of(path) if path.is_file() else None


def _first(request: OptimizeRequest, original: bytes, proposer: str) -> OptimizeDocument:
    return OptimizeDocument(
        schema_version=SCHEMA_VERSION,
        command=tuple(map(encodable, request.told_command)),
        source=encodable(str(request.source)),
        source_sha256=digest(original),
        proposer=proposer,
        state="running",
    )
