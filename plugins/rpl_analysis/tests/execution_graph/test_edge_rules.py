"""The rules of edges, each by a small recording and all edges that it must give (edge_rules.toml)."""

from __future__ import annotations

import shlex
import sys
from ast import literal_eval
from pathlib import Path

import attrs
import pytest

from rpl_analysis.execution_graph.dependencies.graph_launches import NO_LINK, link_lanes
from rpl_analysis.execution_graph.graph import Confidence, EdgeKind
from rpl_testkit.programs import RecordedProgram

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CASES = tomllib.loads((Path(__file__).parent / "edge_rules.toml").read_text(encoding="utf-8"))["case"]


def _value(text: str) -> object:
    try:
        return literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def _played(case: dict) -> RecordedProgram:
    program = RecordedProgram(gpus=case.get("gpus", 1))
    for line in case["program"].strip().splitlines():
        verb, *words = shlex.split(line)
        options = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [_value(word) for word in words if "=" not in word]
        getattr(program, verb)(*plain, **{name: _value(text) for name, text in options.items()})
    return program


def _edges(found) -> set[str]:
    """All edges between work: inside lanes, between them, and through host synchronisations."""
    within = link_lanes(found.nodes, found.found.program)
    order = found.found.program.order.in_start_order.tolist()
    before = dict(zip(order[1:], order[:-1], strict=True))
    rows = [
        (found.name(before[row]), found.name(row), within.kind[row], within.confidence[row])
        for row in range(len(found.nodes))
        if within.kind[row] != NO_LINK
    ]
    table = found.found.edges
    names = [[found.name(row) for row in column.tolist()] for column in (table.source, table.target)]
    between = list(zip(*names, table.kind.tolist(), table.confidence.tolist(), strict=True))
    into: dict[str, dict[str, int]] = {}
    for source, target, _, sure in sorted(between, key=lambda edge: edge[1]):
        if target.startswith("sync "):
            waited = into.setdefault(target, {})
            for work, doubt in into.get(
                source, {source: 0} if not source.startswith("sync ") else {}
            ).items():
                waited[work] = min(waited.get(work, Confidence.GUESS), max(doubt, sure))
    for source, target, kind, sure in between:
        if not target.startswith("sync "):
            through = into[source] if source.startswith("sync ") else {source: 0}
            rows += [(work, target, kind, max(doubt, sure)) for work, doubt in through.items()]
    return {
        f"{u} > {v}: {EdgeKind(kind).name.lower()} {Confidence(sure).name.lower()}"
        for u, v, kind, sure in rows
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["rule"])
def test_a_recording_gives_exactly_the_edges_of_its_rule(case, edges_of) -> None:
    trace = _played(case).trace(with_calls=case.get("with_calls", True))
    found = edges_of(attrs.evolve(trace, grouped_by_queue=case.get("grouped_by_queue", False)))
    guesses = {edge for edge in _edges(found) if ": inferred" in edge}
    assert _edges(found) - guesses == set(case["edges"])
    assert found.found.unresolved.late_syncs == case.get("late", 0)
    if "returns_us" in case:
        returned = (found.found.syncs.time_ns - 10**12) / 1000
        assert returned.tolist() == case["returns_us"]
