"""torch.profiler traces for rpl: their reader, the analysis per operator, and where people see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.document import DocumentSection
    from rpl_core.interfaces.reader import Reader
    from rpl_core.interfaces.section import ReportSection

RPL_API = 2


@hookimpl
def rpl_readers() -> tuple[Reader, ...]:
    from rpl_torch.reader import TorchReader

    return (TorchReader(),)


@hookimpl
def rpl_analyzers() -> tuple[Analyzer, ...]:
    from rpl_torch.analyzer import TorchAnalyzer

    return (TorchAnalyzer(),)


@hookimpl
def rpl_documents() -> tuple[DocumentSection, ...]:
    from rpl_torch.showing import TorchInProfile

    return (TorchInProfile(),)


@hookimpl
def rpl_report_sections() -> tuple[ReportSection, ...]:
    from rpl_torch.showing import TorchSection

    return (TorchSection(),)
