"""Agents of a CSV set, and how its tables refer to them.

Until ROCm 6.x tables name agents by node id (``2``), from 7.0 on by text whose meaning ``--agent-index``
chooses: ``Agent 2`` (logical node id by default) or ``GPU 0`` (number among its type).
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.errors import BadDataError
from rpl_core.model.trace import NOT_RECORDED, Agent
from rpl_rocprofv3.readers.csv.tables import open_text
from rpl_rocprofv3.readers.trace.agents import agent_from_facts, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rpl_core.model.trace import Int32Column
    from rpl_rocprofv3.readers.csv.tables import TextColumn

__all__ = ["CsvAgents", "read_csv_agents"]

_MOST_AGENTS = 4096
_REFERENCE = re.compile(r"(?:(?P<kind>Agent|GPU|CPU)[ -])?(?P<number>\d{1,9})", re.IGNORECASE)


@attrs.define(eq=False)
class CsvAgents:
    """Agents in order of their node id; grows by what tables name when there is no agent table."""

    node: str
    agents: list[Agent]
    logical: dict[int, int]  # logical node id -> index into agents
    described: bool

    def positions(self, column: TextColumn | None, row_count: int) -> Int32Column:
        """Index of the agent of each row."""
        if column is None:
            return np.full(row_count, NOT_RECORDED, np.int32)
        known = np.array([self._find(text) for text in column.texts] or [NOT_RECORDED], np.int32)
        return np.asarray(known[column.code])

    def _find(self, text: str) -> int:
        match = _REFERENCE.fullmatch(text.strip())
        if match is None:
            return NOT_RECORDED
        number, kind = int(match["number"]), (match["kind"] or "").upper()
        if kind in ("GPU", "CPU"):
            same = [i for i, agent in enumerate(self.agents) if agent.kind == kind]
            found = same[number] if number < len(same) else None
        else:
            by_node = next((i for i, a in enumerate(self.agents) if a.index == number), None)
            found = self.logical.get(number, by_node) if kind else by_node
        if found is not None or self.described:
            return NOT_RECORDED if found is None else found
        self.agents.append(Agent(self.node, number, kind if kind == "CPU" else "GPU"))
        return len(self.agents) - 1


def read_csv_agents(path: Path | None, node: str) -> CsvAgents:
    """Read ``agent_info.csv``; without one, agents are made of what the tables name."""
    if path is None:
        return CsvAgents(node, [], {}, described=False)
    with open_text(path) as text:
        return _from_rows(node, csv.DictReader(text), path)


def _from_rows(node: str, rows: Iterable[dict[str, str]], path: Path) -> CsvAgents:
    agents: dict[int, tuple[Agent, int]] = {}
    for row in rows:
        facts = {str(key).lower(): value for key, value in row.items()}
        index = whole_number(facts.get("node_id"))
        if index is None or len(agents) >= _MOST_AGENTS:
            raise BadDataError(f"{path}: a row has no Node_Id, or there are more than {_MOST_AGENTS} agents")
        agent = agent_from_facts(node, index, facts.get("agent_type"), facts, facts.get("name"))
        logical = whole_number(facts.get("logical_node_id"))
        agents.setdefault(index, (agent, index if logical is None else logical))
    ordered = [agents[index] for index in sorted(agents)]
    logical_ids = {logical: place for place, (_, logical) in enumerate(ordered)}
    return CsvAgents(node, [agent for agent, _ in ordered], logical_ids, described=True)
