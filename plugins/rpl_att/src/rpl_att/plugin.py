"""Thread traces for rpl: their reader, the analysis of what they say, and the pass that records them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.reader import Reader

RPL_API = 1


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
