"""The manifest of a run directory as a contract that ``rpl schema run`` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.interfaces.document import DocumentContract

if TYPE_CHECKING:
    from rpl_core.contracts.run import RunManifest


class RunContract(DocumentContract):
    name = "run"
    summary = "the manifest of a run directory"

    def model(self) -> type[RunManifest]:
        from rpl_core.contracts.run import RunManifest

        return RunManifest
