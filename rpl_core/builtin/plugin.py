"""The core's own contributions, through the same hooks as everybody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.collector import Collector
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.equivalence import EquivalenceCheck
    from rpl_core.interfaces.renderer import Renderer
    from rpl_core.interfaces.rule import Rule

RPL_API = 1


@hookimpl
def rpl_collectors() -> tuple[Collector, ...]:
    from rpl_core.builtin.timing_only import TimingOnlyCollector

    return (TimingOnlyCollector(),)


@hookimpl
def rpl_analyzers() -> tuple[Analyzer, ...]:
    from rpl_core.builtin.analyzers import builtin_analyzers

    return builtin_analyzers()


@hookimpl
def rpl_classifier_rules() -> tuple[Rule, ...]:
    from rpl_core.analysis.bottleneck.rule_file import builtin_rules

    return builtin_rules()


@hookimpl
def rpl_equivalence_checks() -> tuple[EquivalenceCheck, ...]:
    from rpl_core.builtin.equivalence.output_files import OutputFilesCheck
    from rpl_core.builtin.equivalence.validation_command import ValidationCommandCheck

    return (ValidationCommandCheck(), OutputFilesCheck())


@hookimpl
def rpl_renderers() -> tuple[Renderer, ...]:
    from rpl_core.renderers.html.renderer import HtmlRenderer
    from rpl_core.renderers.json_bundle import JsonRenderer
    from rpl_core.renderers.text import TextRenderer

    return (TextRenderer(), JsonRenderer(), HtmlRenderer())


@hookimpl
def rpl_doctor_checks() -> tuple[DoctorCheck, ...]:
    from rpl_core.builtin.doctor import InterpreterCheck, RunsDirectoryCheck

    return (InterpreterCheck(), RunsDirectoryCheck())
