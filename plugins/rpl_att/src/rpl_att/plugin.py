"""Thread traces for rpl: recording, reading, analysing and showing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl
from rpl_core.interfaces.options import CommandOption, PluginSetting, SettingKind

if TYPE_CHECKING:
    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.collector import Collector
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.document import DocumentSection
    from rpl_core.interfaces.reader import Reader
    from rpl_core.interfaces.section import ReportSection

RPL_API = 2
#: Their limits and defaults stand in ``rpl_att.options``.
RPL_SETTINGS = (
    PluginSetting("plugins.att.target-cu", SettingKind.VALUE, "compute unit that is traced"),
    PluginSetting("plugins.att.shader-engine-mask", SettingKind.VALUE, "shader engines that are traced"),
    PluginSetting("plugins.att.buffer-bytes", SettingKind.VALUE, "size of the trace buffer"),
    PluginSetting("plugins.att.activity", SettingKind.VALUE, "rate of the activity counters"),
    PluginSetting("plugins.att.library-path", SettingKind.PROGRAM, "folder of the decoder library"),
)


@hookimpl
def rpl_collectors(config: Mapping[str, Any]) -> tuple[Collector, ...]:
    from rpl_att.collector import ThreadTraceCollector
    from rpl_att.options import settings_from

    return (ThreadTraceCollector(settings_from(config)),)


@hookimpl
def rpl_readers() -> tuple[Reader, ...]:
    from rpl_att.reader import ThreadTraceReader

    return (ThreadTraceReader(),)


@hookimpl
def rpl_analyzers() -> tuple[Analyzer, ...]:
    from rpl_att.analyzer import ThreadTraceAnalyzer

    return (ThreadTraceAnalyzer(),)


@hookimpl
def rpl_documents() -> tuple[DocumentSection, ...]:
    from rpl_att.analyzer import TimedTraces, UntimedTraces

    return (TimedTraces(), UntimedTraces())


@hookimpl
def rpl_report_sections() -> tuple[ReportSection, ...]:
    from rpl_att.report import ThreadTraceSection

    return (ThreadTraceSection(),)


@hookimpl
def rpl_options() -> tuple[CommandOption[Any], ...]:
    from rpl_att.options import OPTIONS

    return OPTIONS


@hookimpl
def rpl_doctor_checks(config: Mapping[str, Any]) -> tuple[DoctorCheck, ...]:
    from rpl_att.options import DecoderCheck, settings_from

    return (DecoderCheck(settings_from(config)),)
