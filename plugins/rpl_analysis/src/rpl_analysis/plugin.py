"""What rpl-analysis contributes: options, analyses, rules and the four documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.document import DocumentContract
    from rpl_core.interfaces.options import CommandOption
    from rpl_core.interfaces.rule import Rule

RPL_API = 1


@hookimpl
def rpl_options() -> tuple[CommandOption[Any], ...]:
    from rpl_analysis.options import ANALYSIS_OPTIONS

    return ANALYSIS_OPTIONS


@hookimpl
def rpl_analyzers() -> tuple[Analyzer, ...]:
    from rpl_analysis.analyzers import builtin_analyzers

    return builtin_analyzers()


@hookimpl
def rpl_classifier_rules() -> tuple[Rule, ...]:
    from rpl_analysis.bottleneck.rule_file import builtin_rules

    return builtin_rules()


@hookimpl
def rpl_documents() -> tuple[DocumentContract, ...]:
    from rpl_analysis.documents.kinds import (
        AnalysisKind,
        DagKind,
        ProfileKind,
        RooflineKind,
        WhatIfContract,
    )

    return (ProfileKind(), RooflineKind(), DagKind(), AnalysisKind(), WhatIfContract())
