"""Judge an interleaved comparison again from its directory; nothing is executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_compare.comparison.compare import CompareRequest, Comparison, compare_pairs
from rpl_compare.comparison.manifest import FOLDERS, is_comparison_directory, read_manifest
from rpl_compare.comparison.passes import observe_pass
from rpl_compare.comparison.side import Side
from rpl_core.errors import BadDataError, NoVerdictError
from rpl_core.run_directory.layout import is_run_directory
from rpl_core.run_directory.reader import load_manifest

if TYPE_CHECKING:
    from rpl_compare.contract import ComparisonManifest
    from rpl_core.ingest.claims import Readers

__all__ = ["compare_stored_pairs", "is_comparison_directory"]


def compare_stored_pairs(directory: Path, readers: Readers, request: CompareRequest) -> Comparison:
    """All pairs of which both runs finished; an interrupted comparison gives what it has."""
    manifest = read_manifest(directory)
    pairs = _complete_pairs(manifest)
    if not pairs:
        raise NoVerdictError(
            f"{directory} holds no complete pair", cause=manifest.reason, next_step="measure again"
        )
    sides = [
        _side(label, directory / folder, [pair[label] for pair in pairs], readers, request)
        for label, folder in FOLDERS.items()
    ]
    return compare_pairs(sides[0], sides[1], request, manifest.looks or (len(pairs),))


def _complete_pairs(manifest: ComparisonManifest) -> list[Mapping[str, str]]:
    """Names of the runs of each complete pair, by side, in order."""
    found: dict[int, dict[str, str]] = {}
    for observation in manifest.observations:
        if observation.pair >= 0 and observation.complete:
            found.setdefault(observation.pair, {})[observation.side] = observation.run
    return [found[pair] for pair in sorted(found) if len(found[pair]) == len(FOLDERS)]


def _side(
    label: str, directory: Path, names: Sequence[str], readers: Readers, request: CompareRequest
) -> Side:
    if not is_run_directory(directory):
        raise BadDataError(f"{directory} is no run directory", cause="the comparison was moved in parts")
    manifest = load_manifest(directory)
    entries = {entry.name: entry for entry in manifest.passes if entry.state == "complete"}
    missing = [name for name in names if name not in entries]
    if missing:
        raise BadDataError(f"{directory} lacks the run {missing[0]!r} that its comparison names")
    copies = bool(manifest.options.get("focus_critical"))
    observed = [
        observe_pass(directory, entries[name], readers, request.statistic, include_copies=copies)
        for name in names
    ]
    return Side(
        label=label,
        runs=tuple(run for run, _ in observed),
        facts=tuple(facts for _, facts in observed),
        manifests=(manifest,),
        command=manifest.command,
    )
