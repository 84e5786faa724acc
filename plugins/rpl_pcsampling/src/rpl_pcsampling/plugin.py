"""PC samples for rpl: recording, reading, counting and showing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.collector import Collector
    from rpl_core.interfaces.document import DocumentSection
    from rpl_core.interfaces.options import CommandOption
    from rpl_core.interfaces.reader import Reader
    from rpl_core.interfaces.section import ReportSection

RPL_API = 2


@hookimpl
def rpl_collectors(config: Mapping[str, Any]) -> tuple[Collector, ...]:
    from rpl_pcsampling.collecting import PcSampleCollector

    executable = config.get("plugins.rocprofv3.executable")
    return (PcSampleCollector(None if executable is None else str(executable)),)


@hookimpl
def rpl_readers() -> tuple[Reader, ...]:
    from rpl_pcsampling.reader import PcSampleReader

    return (PcSampleReader(),)


@hookimpl
def rpl_analyzers() -> tuple[Analyzer, ...]:
    from rpl_pcsampling.analyzer import PcSampleAnalyzer

    return (PcSampleAnalyzer(),)


@hookimpl
def rpl_documents() -> tuple[DocumentSection, ...]:
    from rpl_pcsampling.analyzer import SamplesInProfile

    return (SamplesInProfile(),)


@hookimpl
def rpl_report_sections() -> tuple[ReportSection, ...]:
    from rpl_pcsampling.report import PcSampleSection

    return (PcSampleSection(),)


@hookimpl
def rpl_options() -> tuple[CommandOption[Any], ...]:
    from rpl_pcsampling.options import OPTIONS

    return OPTIONS
