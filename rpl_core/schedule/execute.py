"""Run the scheduled analyzers, each inside its own error boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from rpl_core.errors import PluginError, RplError
from rpl_core.interfaces.analyzer import AnalysisContext, Analyzer
from rpl_core.interfaces.fact import Fact, Facts
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.value_checks import value_violation
from rpl_core.plugins.boundary import plugin_boundary, show_traceback
from rpl_core.schedule.order import Step, schedule

__all__ = ["AnalysisResult", "analyze"]


@attrs.frozen(eq=False)
class AnalysisResult:
    """All facts, everything the reader should know, and which plugin gave which fact."""

    facts: Facts
    diagnostics: tuple[Diagnostic, ...]
    providers: Mapping[Fact[Any], str]


def analyze(context: AnalysisContext, steps: Sequence[Step]) -> AnalysisResult:
    """Run all ``steps`` on the recording, device and given facts of ``context``.

    A failing analyzer costs its facts and those that need them, nothing else.
    """
    plan = schedule(steps, frozenset(context.facts))
    facts, providers = context.facts, dict[Fact[Any], str]()
    noticed = list(plan.diagnostics)
    for step in plan.steps:
        lacking = sorted(fact.name for fact in step.analyzer.requires if fact not in facts)
        if lacking:
            noticed.append(_skipped(step, lacking))
            continue
        try:
            with plugin_boundary(step.plugin, f"analyzer {step.analyzer.name!r}"):
                outcome = step.analyzer.analyze(attrs.evolve(context, facts=facts))
                given, remarks = dict(outcome.facts), tuple(outcome.diagnostics)
                _check(step.analyzer, given, remarks)
        except PluginError as error:
            show_traceback(error)
            noticed.append(_failed(step, error.problem))
        except RplError as error:
            noticed.append(_failed(step, error.one_line()))
        else:
            facts = facts.with_values(given)
            providers.update(dict.fromkeys(given, step.plugin))
            noticed += remarks
    return AnalysisResult(facts, tuple(noticed), providers)


def _check(analyzer: Analyzer, facts: Mapping[Fact[Any], Any], remarks: Sequence[object]) -> None:
    if set(facts) != analyzer.provides:
        promised = ", ".join(sorted(fact.name for fact in analyzer.provides))
        given = ", ".join(sorted(str(getattr(fact, "name", fact)) for fact in facts))
        raise RplError(f"it promised the facts {promised} and gave {given}")
    for fact, value in facts.items():
        problem = fact.violation(value)
        if problem is not None:
            raise RplError(problem)
    for remark in remarks:
        problem = value_violation(remark) if isinstance(remark, Diagnostic) else "it is no Diagnostic"
        if problem is not None:
            raise RplError(f"it gave the diagnostic {remark!r:.60}: {problem}")


def _failed(step: Step, problem: str) -> Diagnostic:
    return Diagnostic(
        "analyzer.failed",
        f"analyzer {step.analyzer.name!r} of plugin {step.plugin!r} failed: {problem}",
        severity=Severity.ERROR,
        where=step.label,
        remedy="run with RPL_TRACEBACK=1 and report it to the plugin's author",
    )


def _skipped(step: Step, lacking: list[str]) -> Diagnostic:
    return Diagnostic(
        "analyzer.skipped",
        f"analyzer {step.analyzer.name!r} did not run: {', '.join(lacking)} is not available",
        where=step.label,
    )
