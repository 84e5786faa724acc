"""The contracts as the core knows them; the models are imported when somebody looks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.interfaces.document import DocumentContract

if TYPE_CHECKING:
    from rpl_autotune.contracts.autotune import AutotuneDocument, SpaceFile

__all__ = ["AutotuneContract", "SearchSpaceContract"]


class AutotuneContract(DocumentContract):
    name = "autotune"
    summary = "a search of launch and tile parameters"

    def model(self) -> type[AutotuneDocument]:
        from rpl_autotune.contracts.autotune import AutotuneDocument

        return AutotuneDocument

    def found_in(self, directory: Path) -> str:
        best = directory / "best"
        return f"see it with `rpl autotune --show {directory}`; the profile of the winner is {best}"


class SearchSpaceContract(DocumentContract):
    name = "search-space"
    summary = "the space file of `rpl autotune`"

    def model(self) -> type[SpaceFile]:
        from rpl_autotune.contracts.autotune import SpaceFile

        return SpaceFile
