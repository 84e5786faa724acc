"""Facts of third-party analyzers on their way into ``analysis.json``: only what JSON can hold gets there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rpl_core.model.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_core.schedule.execute import AnalysisResult

#: The plugin of the core's own analyzers, whose facts have places of their own in the documents.
_CORE_PLUGIN = "analysis"
#: Facts of plugins that have such places too.
_PLACED = frozenset({"att"})


def extensions(result: AnalysisResult) -> tuple[Mapping[str, Any], tuple[Diagnostic, ...]]:
    """Facts by name, sorted, as plain JSON values; one that JSON can't hold is left out and reported."""
    kept: dict[str, Any] = {}
    problems = []
    for fact, plugin in sorted(result.providers.items()):
        if plugin == _CORE_PLUGIN or fact in _PLACED:
            continue
        try:
            kept[fact] = _plain(result.facts[fact])
        except (TypeError, ValueError, RecursionError) as error:
            problems.append(_unusable(fact, plugin, error))
    return kept, tuple(problems)


def _plain(value: Any) -> Any:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return json.loads(text.encode("utf-8"))


def _unusable(fact: str, plugin: str, error: Exception) -> Diagnostic:
    return Diagnostic(
        "analyzer.fact_not_json",
        f"the fact {fact!r} of plugin {plugin!r} can't be written: {error}",
        severity=Severity.ERROR,
        where=f"plugin {plugin}",
        remedy="report it to the plugin's author",
    )
