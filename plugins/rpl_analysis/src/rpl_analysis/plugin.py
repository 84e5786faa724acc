"""What rpl-analysis contributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.interfaces.analyzer import Analyzer
    from rpl_core.interfaces.rule import Rule

RPL_API = 1


@hookimpl
def rpl_analyzers() -> tuple[Analyzer, ...]:
    from rpl_analysis.analyzers import builtin_analyzers

    return builtin_analyzers()


@hookimpl
def rpl_classifier_rules() -> tuple[Rule, ...]:
    from rpl_analysis.bottleneck.rule_file import builtin_rules

    return builtin_rules()
