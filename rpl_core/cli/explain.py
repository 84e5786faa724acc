"""``rpl explain``: why a kernel got its bottleneck label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rpl_core.cli.session import session_of

if TYPE_CHECKING:
    from rpl_core.cli.output import Output
    from rpl_core.contracts.analysis import AnalysisDocument, KernelAnalysis, RuleEvidence


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

    session = session_of(context)
    directory = directory or session.latest_run
    analysis: AnalysisDocument = load_document(directory, "analysis")  # type: ignore[assignment]
    found = _find(analysis, kernel, directory)
    if as_json:
        session.output.json(found.model_dump(mode="json"))
    else:
        _print(session.output, found)


def _find(analysis: AnalysisDocument, name: str | None, directory: Path) -> KernelAnalysis:
    from rpl_core.errors import MissingError, UsageError

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
    shown = "; ".join(entry.kernel[:80] for entry in matching[:3])
    raise UsageError(f"{len(matching)} kernels match {name!r}: {shown}", next_step="give more of the name")


def _print(output: Output, found: KernelAnalysis) -> None:
    output.line(found.kernel)
    output.line(f"label       {found.bottleneck} (confidence: {found.confidence})")
    output.line(f"why         {found.reason}")
    if found.headroom_fraction is not None:
        output.line(f"headroom    {found.headroom_fraction:.1%}  [{found.headroom_source}]")
    for title, rules in (("evidence", found.evidence), ("near misses", found.near_misses)):
        for rule in rules:
            _print_rule(output, title, rule)
    for line in found.unknown:
        output.line(f"unknown     {line}")


def _print_rule(output: Output, title: str, rule: RuleEvidence) -> None:
    output.line(f"{title:<12}rule {rule.rule} -> {rule.label}: {rule.explanation}")
    for condition in rule.conditions:
        value = "unknown" if condition.value is None else f"{condition.value:.4g}"
        verdict = {True: "holds", False: "fails", None: "unknown"}[condition.holds]
        output.line(
            f"            {condition.quantity} = {value} {condition.comparison} {condition.threshold:g} "
            f"{verdict}  [threshold: {condition.source}]"
        )
