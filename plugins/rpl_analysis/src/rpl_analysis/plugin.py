"""What rpl-analysis contributes: options, analyses, rules and the four documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_analysis.interfaces import Advice, CollectiveRule, Rule
    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.document import DocumentContract
    from rpl_core.interfaces.options import CommandOption

RPL_API = 2


@hookimpl
def rpl_options() -> tuple[CommandOption[Any], ...]:
    from rpl_analysis.options import ANALYSIS_OPTIONS
    from rpl_analysis.range_option import RANGE

    return (*ANALYSIS_OPTIONS, RANGE)


@hookimpl
def rpl_analyzers() -> tuple[Analyzer, ...]:
    from rpl_analysis.advice import AdviceAnalyzer
    from rpl_analysis.bottleneck import BottleneckAnalyzer
    from rpl_analysis.counters import CountersAnalyzer
    from rpl_analysis.execution_graph.analyzer import ExecutionGraphAnalyzer
    from rpl_analysis.instruction_mix import InstructionMixAnalyzer
    from rpl_analysis.occupancy import OccupancyAnalyzer
    from rpl_analysis.phases import PhasesAnalyzer
    from rpl_analysis.ranks.analyzer import RanksAnalyzer
    from rpl_analysis.roofline import RooflineAnalyzer
    from rpl_analysis.runtime import RuntimeAnalyzer

    return (
        RuntimeAnalyzer(),
        OccupancyAnalyzer(),
        CountersAnalyzer(),
        InstructionMixAnalyzer(),
        RooflineAnalyzer(),
        ExecutionGraphAnalyzer(),
        RanksAnalyzer(),
        PhasesAnalyzer(),
        BottleneckAnalyzer(),
        AdviceAnalyzer(),
    )


@hookimpl
def rpl_classifier_rules() -> tuple[Rule, ...]:
    from rpl_analysis.bottleneck import builtin_rules

    return builtin_rules()


@hookimpl
def rpl_collective_rules() -> tuple[CollectiveRule, ...]:
    from rpl_analysis.ranks.report import builtin_collective_rules

    return builtin_collective_rules()


@hookimpl
def rpl_advice() -> tuple[Advice, ...]:
    from rpl_analysis.advice import builtin_advice

    return builtin_advice()


@hookimpl
def rpl_documents() -> tuple[DocumentContract, ...]:
    from rpl_analysis.documents import (
        AnalysisKind,
        DagKind,
        ProfileKind,
        RanksContract,
        RooflineKind,
        WhatIfContract,
    )

    return (ProfileKind(), RooflineKind(), DagKind(), AnalysisKind(), RanksContract(), WhatIfContract())
