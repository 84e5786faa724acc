"""Run the scheduled analyzers, each inside its own error boundary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

import attrs

from rpl_core.errors import PluginError, RplError
from rpl_core.interfaces.analyzer import AnalysisContext, Analyzer, AppFigure, Fact, Facts, KernelFigure
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.value_checks import value_violation
from rpl_core.plugins.boundary import plugin_boundary, show_traceback
from rpl_core.text import counted
from rpl_core.values import frozen

#: Kernels that a plugin may name though the recording doesn't (chosen).
MOST_INVENTED = 1000


@frozen
class Step:
    """An analyzer and the plugin that contributed it; what strangers give is checked fact by fact."""

    plugin: str
    analyzer: Analyzer
    trusted: bool = False

    @property
    def label(self) -> str:
        return f"{self.plugin}:{self.analyzer.name}"


@frozen
class Schedule:
    steps: tuple[Step, ...]
    diagnostics: tuple[Diagnostic, ...]


def schedule(steps: Sequence[Step], given: frozenset[Fact[Any]] = frozenset()) -> Schedule:
    """Steps in an order that gives each what it requires; ties go by plugin and analyzer name.

    ``given`` are facts that exist from the start.

    Refused, with a diagnostic: a second provider of a fact, members of a cycle, and steps whose facts
    nobody provides.
    """
    diagnostics: list[Diagnostic] = []
    usable = _single_providers(sorted(steps, key=lambda s: (s.plugin, s.analyzer.name)), diagnostics)
    usable = _without_cycles(usable, diagnostics)
    usable = _with_requirements(usable, given, diagnostics)
    return Schedule(tuple(_ordered(usable)), tuple(diagnostics))


def _single_providers(steps: Sequence[Step], diagnostics: list[Diagnostic]) -> list[Step]:
    providers: dict[Fact[Any], Step] = {}
    single = []
    for step in steps:
        taken = [fact for fact in _sorted(step.analyzer.provides) if fact in providers]
        if taken:
            other = providers[taken[0]].label
            diagnostics.append(_refused(step, f"{other} already provides {_names(taken)}"))
            continue
        single.append(step)
        providers.update(dict.fromkeys(step.analyzer.provides, step))
    return single


def _graph(steps: Sequence[Step]) -> dict[str, list[str]]:
    """For each step label the labels of the steps it waits for."""
    provider = {fact: step.label for step in steps for fact in step.analyzer.provides}
    figures = {label for fact, label in provider.items() if isinstance(fact, (KernelFigure, AppFigure))}
    return {
        step.label: sorted(
            {provider[f] for f in step.analyzer.requires | step.analyzer.wants if f in provider}
            | (figures - {step.label} if step.analyzer.wants_figures else set())
        )
        for step in steps
    }


def _sorted(facts: Iterable[Fact[Any]]) -> list[Fact[Any]]:
    return sorted(facts, key=lambda fact: fact.name)


def _names(facts: Iterable[Fact[Any]]) -> str:
    return ", ".join(fact.name for fact in _sorted(facts))


def _without_cycles(steps: list[Step], diagnostics: list[Diagnostic]) -> list[Step]:
    while True:
        try:
            TopologicalSorter(_graph(steps)).prepare()
        except CycleError as error:
            members = sorted(set(error.args[1]))
            by_label = {step.label: step for step in steps}
            diagnostics += [_refused(by_label[m], f"it is in a cycle: {', '.join(members)}") for m in members]
            steps = [step for step in steps if step.label not in members]
        else:
            return steps


def _with_requirements(
    steps: list[Step], given: frozenset[Fact[Any]], diagnostics: list[Diagnostic]
) -> list[Step]:
    while True:
        provided = given.union(*(step.analyzer.provides for step in steps))
        lacking = [step for step in steps if not step.analyzer.requires <= provided]
        if not lacking:
            return steps
        diagnostics += [
            _refused(s, f"nobody provides {_names(s.analyzer.requires - provided)}") for s in lacking
        ]
        steps = [step for step in steps if step not in lacking]


def _ordered(steps: Sequence[Step]) -> list[Step]:
    by_label = {step.label: step for step in steps}
    sorter = TopologicalSorter(_graph(steps))
    sorter.prepare()
    ordered: list[Step] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        ordered += [by_label[label] for label in ready]
        sorter.done(*ready)
    return ordered


def _refused(step: Step, why: str) -> Diagnostic:
    return _lost("analyzer.refused", step, f"does not run: {why}")


def _lost(code: str, step: Step, told: str, remedy: str | None = None) -> Diagnostic:
    fact = f"analyzer {step.analyzer.name!r} of plugin {step.plugin!r} {told}"
    return Diagnostic(code, fact, severity=Severity.ERROR, where=step.label, remedy=remedy)


@frozen(eq=False)
class AnalysisResult:
    """All facts, everything the reader should know, and which plugin gave which fact."""

    facts: Facts
    diagnostics: tuple[Diagnostic, ...]
    providers: Mapping[Fact[Any], str]
    remarks: tuple[str, ...] = ()


def analyze(context: AnalysisContext, steps: Sequence[Step]) -> AnalysisResult:
    """Run all ``steps`` on the recording, device and given facts of ``context``.

    A failing analyzer costs its facts and those that need them, nothing else.
    """
    plan = schedule(steps, frozenset(context.facts))
    facts, providers = context.facts, dict[Fact[Any], str]()
    noticed, remarks = list(plan.diagnostics), list[str]()
    for step in plan.steps:
        lacking = sorted(fact.name for fact in step.analyzer.requires if fact not in facts)
        if lacking:
            noticed.append(_skipped(step, lacking))
            continue
        try:
            with plugin_boundary(step.plugin, f"analyzer {step.analyzer.name!r}"):
                outcome = step.analyzer.analyze(attrs.evolve(context, facts=facts))
                given, diagnostics = dict(outcome.facts), tuple(outcome.diagnostics)
                if not step.trusted:
                    _refuse_invented(given, context)  # before each value of too many is looked at
                    _check(step.analyzer, given, diagnostics, outcome.remarks)
        except PluginError as error:
            if error.plugin != step.plugin:  # one that the user asked for, and that the analyzer asked
                raise
            show_traceback(error)
            noticed.append(_failed(step, error.problem))
        except RplError as error:
            noticed.append(_failed(step, error.one_line()))
        else:
            facts = facts.with_values(given)
            providers.update(dict.fromkeys(given, step.plugin))
            noticed += diagnostics
            remarks += outcome.remarks
    return AnalysisResult(facts, tuple(noticed), providers, tuple(remarks))


def _check(
    analyzer: Analyzer,
    facts: Mapping[Fact[Any], Any],
    diagnostics: Sequence[object],
    remarks: Sequence[object],
) -> None:
    if set(facts) != analyzer.provides:
        promised = ", ".join(sorted(fact.name for fact in analyzer.provides))
        given = ", ".join(sorted(str(getattr(fact, "name", fact)) for fact in facts))
        raise RplError(f"it promised the facts {promised} and gave {given}")
    for fact, value in facts.items():
        problem = fact.violation(value)
        if problem is not None:
            raise RplError(problem)
    for diagnostic in diagnostics:
        problem = value_violation(diagnostic) if isinstance(diagnostic, Diagnostic) else "it is no Diagnostic"
        if problem is not None:
            raise RplError(f"it gave the diagnostic {diagnostic!r:.60}: {problem}")
    if not isinstance(remarks, tuple) or not all(isinstance(remark, str) for remark in remarks):
        raise RplError(f"it gave the remarks {remarks!r:.60}, which are no tuple of texts")


def _refuse_invented(facts: Mapping[Fact[Any], Any], context: AnalysisContext) -> None:
    """Figures of countless kernels that nobody recorded; a few may be named otherwise there."""
    for fact, value in facts.items():
        if isinstance(fact, KernelFigure) and isinstance(value, Mapping) and len(value) > MOST_INVENTED:
            invented = set(value).difference(k.name for t in context.recording.traces for k in t.kernels)
            if len(invented) > MOST_INVENTED:
                raise RplError(
                    f"the fact {fact.name!r} has {counted(len(invented), 'kernel')} that nobody recorded"
                )


def _failed(step: Step, problem: str) -> Diagnostic:
    remedy = "run with RPL_TRACEBACK=1 and report it to the plugin's author"
    return _lost("analyzer.failed", step, f"failed: {problem}", remedy)


def _skipped(step: Step, lacking: list[str]) -> Diagnostic:
    fact = f"analyzer {step.analyzer.name!r} did not run: {', '.join(lacking)} is not available"
    return Diagnostic("analyzer.skipped", fact, where=step.label)
