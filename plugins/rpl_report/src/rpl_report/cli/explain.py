"""``rpl explain``: why a kernel got its bottleneck label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rpl_core.cli.session import session_of

if TYPE_CHECKING:
    from rpl_analysis.contracts.analysis import (
        AnalysisDocument,
        ConditionEvidence,
        KernelAnalysis,
        RuleEvidence,
    )
    from rpl_analysis.contracts.roofline import RooflineDocument
    from rpl_core.cli.output import Output


@click.command("explain")
@click.argument("kernel", required=False)
@click.option(
    "--run",
    "directory",
    type=click.Path(path_type=Path),
    help="Run directory (default: the latest run).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def explain(context: click.Context, kernel: str | None, directory: Path | None, as_json: bool) -> None:
    """Say why KERNEL (a name or a part of one; default: the longest-running) got its label.

    Example: rpl explain vecCopy --run rpl-runs/latest
    """
    from rpl_core.documents.load import load_document
    from rpl_report.cli.explain_roofline import roofline_lines

    session = session_of(context)
    directory = directory or session.latest_run
    analysis: AnalysisDocument = load_document(directory, "analysis")  # type: ignore[assignment]
    found = _find(analysis, kernel, directory)
    if as_json:
        session.output.json(found.model_dump(mode="json"))
    else:
        _print(session.output, found)
        session.output.line()
        roofline: RooflineDocument = load_document(directory, "roofline")  # type: ignore[assignment]
        for line in roofline_lines(roofline, found.kernel):
            session.output.line(line)


def _find(analysis: AnalysisDocument, name: str | None, directory: Path) -> KernelAnalysis:
    from rpl_core.errors import MissingError, UsageError
    from rpl_core.text.distinct import named_few

    if not analysis.kernels:
        raise MissingError(f"the analysis in {directory} holds no kernel")
    if name is None:
        return analysis.kernels[0]
    exact = [entry for entry in analysis.kernels if entry.kernel == name]
    matching = exact or [entry for entry in analysis.kernels if name in entry.kernel]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise MissingError(f"no kernel matches {name!r}", next_step=f"see `rpl report {directory}`")
    shown = named_few([entry.kernel for entry in matching])
    raise UsageError(f"{len(matching)} kernels match {name!r}: {shown}", next_step="give more of the name")


def _print(output: Output, found: KernelAnalysis) -> None:
    output.line(found.kernel)
    output.line()
    output.line(f"label       {found.bottleneck} (confidence: {found.confidence})")
    output.line(f"why         {found.reason}")
    output.line(f"headroom    {_headroom(found)}")
    for title, rules in (("evidence", found.evidence), ("near misses", found.near_misses)):
        for i, rule in enumerate(rules):
            output.line()
            decides = ", decides" if title == "evidence" and i == 0 else ""
            output.line(f"{title:<12}{rule.rule} -> {rule.label}{decides}")
            _print_rule(output, rule)
    if found.unknown:
        output.line()
    for line in found.unknown:
        output.line(f"unknown     {line}")


def _headroom(found: KernelAnalysis) -> str:
    if found.headroom_fraction is None:
        return f"unknown: {found.headroom_reason or 'nothing was recorded that tells'}"
    return f"{found.headroom_fraction:.1%}  [{found.headroom_source}]"


def _print_rule(output: Output, rule: RuleEvidence) -> None:
    """The rule in words, then each condition with its figure, its exactness and where it comes from."""
    output.line(f"{'':<12}{rule.explanation}")
    rows = [
        (
            condition.quantity,
            _value(condition),
            f"{condition.comparison} {condition.threshold:.0%}",
            {True: "holds", False: "fails", None: "unknown"}[condition.holds],
            f"threshold: {condition.source}",
        )
        for condition in rule.conditions
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for (name, value, limit, verdict, source), condition in zip(rows, rule.conditions, strict=True):
        output.line(
            f"{'':<14}{name:<{widths[0]}}  {value:>{widths[1]}} {limit:<{widths[2]}}  {verdict:<{widths[3]}}"
            f"  [{source}]"
        )
        if condition.formula is not None:
            output.line(f"{'':<16}= {condition.formula}")


def _value(condition: ConditionEvidence) -> str:
    """In percent; an inexact figure says so, one near its threshold shows the digits that tell them apart."""
    if condition.value is None:
        return "unknown"
    near = abs(condition.value - condition.threshold) < 0.001
    text = f"{condition.value:.{3 if near else 1}%}"
    if condition.upper is not None:
        return f"{text} to {condition.upper:.1%}"
    return text if condition.exactness in ("exact", None) else f"{text} ({condition.exactness})"
