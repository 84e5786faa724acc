"""Thread traces for rpl: their reader, the analysis of what they say, and the pass that records them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.collector import Collector
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.reader import Reader

RPL_API = 1

_config: dict[str, Any] = {}


@hookimpl
def rpl_configure(config: Mapping[str, Any]) -> None:
    _config.clear()
    _config.update(config)


@hookimpl
def rpl_collectors() -> tuple[Collector, ...]:
    from rpl_att.collector.att_collector import ThreadTraceCollector
    from rpl_att.collector.settings import settings_from

    return (ThreadTraceCollector(settings_from(_config)),)


@hookimpl
def rpl_readers() -> tuple[Reader, ...]:
    from rpl_att.reader import ThreadTraceReader

    return (ThreadTraceReader(),)


@hookimpl
def rpl_analyzers() -> tuple[Analyzer, ...]:
    from rpl_att.analyzer import ThreadTraceAnalyzer

    return (ThreadTraceAnalyzer(),)


@hookimpl
def rpl_doctor_checks() -> tuple[DoctorCheck, ...]:
    from rpl_att.doctor import DecoderCheck

    return (DecoderCheck(),)
