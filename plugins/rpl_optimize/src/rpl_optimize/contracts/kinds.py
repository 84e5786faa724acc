"""The contract of a session's summary as the core knows it; the model is imported when somebody looks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.interfaces.document import DocumentContract

if TYPE_CHECKING:
    from rpl_optimize.contracts.optimize import OptimizeDocument

__all__ = ["OptimizeContract"]


class OptimizeContract(DocumentContract):
    name = "optimize"
    summary = "an optimization"

    def model(self) -> type[OptimizeDocument]:
        from rpl_optimize.contracts.optimize import OptimizeDocument

        return OptimizeDocument

    def found_in(self, directory: Path) -> str:
        measured = directory / "baselines" / "001" / "profile"
        return (
            f"see it with `rpl ledger show {directory}`; "
            f"the runs that it measured are below, such as {measured}"
        )
