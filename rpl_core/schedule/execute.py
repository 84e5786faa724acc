"""Run the scheduled analyzers, each inside its own error boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from rpl_core.errors import PluginError, RplError
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOptions
from rpl_core.model.device import DeviceModel
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.recording import Recording
from rpl_core.plugins.boundary import plugin_boundary, show_traceback
from rpl_core.schedule.order import Step, schedule


@attrs.frozen(eq=False)
class AnalysisResult:
    """All facts by name, everything the reader should know, and which plugin gave which fact."""

    facts: Mapping[str, Any]
    diagnostics: tuple[Diagnostic, ...]
    providers: Mapping[str, str]


def analyze(
    recording: Recording,
    device: DeviceModel | None,
    options: AnalysisOptions,
    steps: Sequence[Step],
    given: Mapping[str, Any],
) -> AnalysisResult:
    """Run all ``steps`` on the ``given`` facts.

    A failing analyzer costs its facts and those that need them, nothing else.
    """
    plan = schedule(steps, frozenset(given))
    facts: dict[str, Any] = dict(given)
    providers: dict[str, str] = {}
    found = list(plan.diagnostics)
    for step in plan.steps:
        lacking = sorted(step.analyzer.requires - facts.keys())
        if lacking:
            found.append(_skipped(step, lacking))
            continue
        context = AnalysisContext(recording, device, options, facts)
        try:
            with plugin_boundary(step.plugin, f"analyzer {step.analyzer.name!r}"):
                outcome = step.analyzer.analyze(context)
                _check(step, outcome.facts)
        except PluginError as error:
            show_traceback(error)
            found.append(_failed(step, error.problem))
        except RplError as error:
            found.append(_failed(step, error.one_line()))
        else:
            facts.update(outcome.facts)
            providers.update(dict.fromkeys(outcome.facts, step.plugin))
            found += outcome.diagnostics
    return AnalysisResult(facts, tuple(found), providers)


def _check(step: Step, facts: Mapping[str, Any]) -> None:
    if set(facts) != step.analyzer.provides:
        promised = ", ".join(sorted(step.analyzer.provides))
        given = ", ".join(sorted(facts))
        raise RplError(f"it promised the facts {promised} and gave {given}")


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
