"""What rpl-compare contributes beside its command: the contracts of the files that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl
from rpl_core.interfaces.document import DocumentContract

if TYPE_CHECKING:
    from rpl_compare.contract import CompareDocument, HistoryDocument
    from rpl_measure.manifest import ComparisonManifest

RPL_API = 2


@hookimpl
def rpl_documents() -> tuple[DocumentContract, ...]:
    return (CompareContract(), ComparisonContract(), HistoryContract())


# The contracts of this distribution as the core knows them; the models are imported when somebody looks.


class CompareContract(DocumentContract):
    name = "compare"
    summary = "what `rpl compare --json` prints"

    def model(self) -> type[CompareDocument]:
        from rpl_compare.contract import CompareDocument

        return CompareDocument


class ComparisonContract(DocumentContract):
    name = "comparison"
    summary = "the manifest of an interleaved comparison"

    def model(self) -> type[ComparisonManifest]:
        from rpl_measure.manifest import ComparisonManifest

        return ComparisonManifest


class HistoryContract(DocumentContract):
    name = "history"
    summary = "what `rpl compare --history --json` prints"

    def model(self) -> type[HistoryDocument]:
        from rpl_compare.contract import HistoryDocument

        return HistoryDocument
