"""Sort analyzers by what they need and give; report what can't run.

The graph has a dozen nodes and is needed at every start of an analysis, so the standard library's
``graphlib`` does it: importing networkx here would cost more than analysing 100 000 dispatches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

import attrs

from rpl_core.interfaces.analyzer import Analyzer
from rpl_core.interfaces.fact import AppFigure, Fact, KernelFigure
from rpl_core.model.diagnostic import Diagnostic, Severity


@attrs.frozen
class Step:
    """An analyzer and the plugin that contributed it."""

    plugin: str
    analyzer: Analyzer

    @property
    def label(self) -> str:
        return f"{self.plugin}:{self.analyzer.name}"


@attrs.frozen
class Schedule:
    steps: tuple[Step, ...]
    diagnostics: tuple[Diagnostic, ...]


def schedule(steps: Sequence[Step], given: frozenset[Fact[Any]] = frozenset()) -> Schedule:
    """Steps in an order that gives each what it requires; ties go by plugin and analyzer name.

    ``given`` are facts that exist from the start.

    Refused, with a diagnostic: a second provider of a fact, members of a cycle, and steps whose facts
    nobody provides.
    """
    found: list[Diagnostic] = []
    kept = _single_providers(sorted(steps, key=lambda s: (s.plugin, s.analyzer.name)), found)
    kept = _without_cycles(kept, found)
    kept = _with_requirements(kept, given, found)
    return Schedule(tuple(_ordered(kept)), tuple(found))


def _single_providers(steps: Sequence[Step], found: list[Diagnostic]) -> list[Step]:
    providers: dict[Fact[Any], Step] = {}
    kept = []
    for step in steps:
        taken = [fact for fact in _sorted(step.analyzer.provides) if fact in providers]
        if taken:
            other = providers[taken[0]].label
            found.append(_refused(step, f"{other} already provides {_names(taken)}"))
            continue
        kept.append(step)
        providers.update(dict.fromkeys(step.analyzer.provides, step))
    return kept


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


def _without_cycles(steps: list[Step], found: list[Diagnostic]) -> list[Step]:
    while True:
        try:
            TopologicalSorter(_graph(steps)).prepare()
        except CycleError as error:
            members = sorted(set(error.args[1]))
            by_label = {step.label: step for step in steps}
            found += [_refused(by_label[m], f"it is in a cycle: {', '.join(members)}") for m in members]
            steps = [step for step in steps if step.label not in members]
        else:
            return steps


def _with_requirements(steps: list[Step], given: frozenset[Fact[Any]], found: list[Diagnostic]) -> list[Step]:
    while True:
        provided = given.union(*(step.analyzer.provides for step in steps))
        lacking = [step for step in steps if not step.analyzer.requires <= provided]
        if not lacking:
            return steps
        for step in lacking:
            missing = _names(step.analyzer.requires - provided)
            found.append(_refused(step, f"nobody provides {missing}"))
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
    return Diagnostic(
        "analyzer.refused",
        f"analyzer {step.analyzer.name!r} of plugin {step.plugin!r} does not run: {why}",
        severity=Severity.ERROR,
        where=step.label,
    )
