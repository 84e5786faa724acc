"""What rpl-compare contributes beside its command: the contracts of the files that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.document import DocumentContract

RPL_API = 2


@hookimpl
def rpl_documents() -> tuple[DocumentContract, ...]:
    from rpl_compare.contract_kinds import CompareContract, ComparisonContract, HistoryContract

    return (CompareContract(), ComparisonContract(), HistoryContract())
