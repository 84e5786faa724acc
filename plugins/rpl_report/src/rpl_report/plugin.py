"""What rpl-report contributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.options import CommandOption
    from rpl_core.interfaces.section import Renderer, ReportSection
    from rpl_report.interfaces import Exporter

RPL_API = 2


@hookimpl
def rpl_options() -> tuple[CommandOption[Any], ...]:
    from rpl_report.options import REPORT_OPTIONS

    return REPORT_OPTIONS


@hookimpl
def rpl_renderers() -> tuple[Renderer, ...]:
    from rpl_report.exporters import CsvRenderer, JsonRenderer, SarifRenderer
    from rpl_report.html import HtmlRenderer
    from rpl_report.text import TextRenderer

    return (TextRenderer(), JsonRenderer(), HtmlRenderer(), CsvRenderer(), SarifRenderer())


@hookimpl
def rpl_report_sections() -> tuple[ReportSection, ...]:
    from rpl_report.built_in_sections import AdviceSection, PhasesSection, RanksSection, SpeedOfLightSection

    return (AdviceSection(), SpeedOfLightSection(), PhasesSection(), RanksSection())


@hookimpl
def rpl_exporters() -> tuple[Exporter, ...]:
    from rpl_report import exporters

    return (
        exporters.PerfettoExporter(),
        exporters.CsvExporter(),
        exporters.ParquetExporter(),
        exporters.SpeedscopeExporter(),
        exporters.GraphmlExporter(),
        exporters.DotExporter(),
    )
