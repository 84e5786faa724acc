"""The parts of a rocpd database, and what their rows refer to: processes, agents, kernels, streams, strings.

Reads the small ``rocpd_info_*`` tables of one part. Columns are always named, never ``*``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.trace import NOT_RECORDED, Agent, Kernel, Process
from rpl_core.values import frozen
from rpl_rocprofv3.database import Table, Tables, quoted
from rpl_rocprofv3.readers.columns import display_name, distinct_ids, plain_symbol, positions
from rpl_rocprofv3.readers.trace import agent_from_facts, parsed_facts, whole_number

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from rpl_core.model.trace import Int32Column, Int64Column

# The parts of a rocpd database: one per guid, each with its own tables.
#
# A file of one process has one part; a merged file has several, whose plain views are unions. Physical
# tables are preferred because a view over ``rocpd_info_process`` would expand to all of its columns, and
# its environment column holds secrets (docs/reference/formats.md, trap 9).

_ANCHOR = "rocpd_info_process"


@frozen(eq=False)
class Part:
    """The tables of one guid. Table names are given without prefix ``rocpd_`` and without suffix."""

    connection: sqlite3.Connection
    guid: str
    _catalogue: Tables
    _suffix: str
    _restricted: bool

    def table(self, base: str) -> Table | None:
        """The table ``rocpd_<base>`` of this part, or None."""
        name = f"rocpd_{base}"
        physical = self._catalogue.get(name + self._suffix)
        if physical is not None and not self._restricted:
            return physical
        table = physical or self._catalogue.get(name)
        if table is None or "guid" not in table.columns:
            return table
        return attrs.evolve(table, guid=self.guid)


def parts_of(connection: sqlite3.Connection) -> tuple[Part, ...]:
    """All parts in order of guid."""
    catalogue = Tables(connection)
    suffixes = [
        name[len(_ANCHOR) :]
        for name in catalogue.names()
        if name.startswith(_ANCHOR) and name != _ANCHOR and catalogue.is_table(name)
    ]
    parts = [part for suffix in suffixes or [""] for part in _parts_with(connection, catalogue, suffix)]
    return tuple(sorted(parts, key=lambda part: part.guid))


def _parts_with(connection: sqlite3.Connection, catalogue: Tables, suffix: str) -> list[Part]:
    anchor = catalogue.get(_ANCHOR + suffix)
    if anchor is None or "guid" not in anchor.columns:
        return [Part(connection, suffix.lstrip("_"), catalogue, suffix, False)]
    rows = connection.execute(f"SELECT DISTINCT guid FROM {quoted(anchor.name)}").fetchall()  # noqa: S608
    guids = sorted(str(row[0]) for row in rows) or [suffix.lstrip("_").replace("_", "-")]
    return [Part(connection, guid, catalogue, suffix, len(guids) > 1) for guid in guids]


@frozen(eq=False)
class Processes:
    """Processes with the row ids under which other tables refer to them."""

    ids: tuple[int, ...]
    values: tuple[Process, ...]
    grouped_by_queue: bool

    def positions(self, ids: Int64Column) -> Int32Column:
        return positions(ids, self.ids)


@frozen(eq=False)
class Agents:
    ids: tuple[int, ...]
    values: tuple[Agent, ...]

    def positions(self, ids: Int64Column) -> Int32Column:
        return positions(ids, self.ids)


def _rows(part: Part, base: str, *columns: str) -> Iterator[tuple[Any, ...]]:
    table = part.table(base)
    return table.rows(part.connection, columns) if table else iter(())


def _text(value: object) -> str | None:
    return str(value) if value not in (None, "") else None


def _node_names(part: Part) -> dict[int, str | None]:
    return {row[0]: _text(row[1]) for row in _rows(part, "info_node", "id", "hostname")}


def _node(nid: object, hostnames: dict[int, str | None]) -> tuple[str, str | None]:
    # The row id is a hash of the machine id and the same in every file of that machine.
    hostname = hostnames.get(nid) if isinstance(nid, int) else None
    return f"{hostname or 'node'}/{nid}", hostname


def read_processes(part: Part) -> Processes:
    """All processes of the part, in order of their row id."""
    hostnames = _node_names(part)
    processes: dict[int, Process] = {}
    grouped = False
    columns = ("id", "nid", "pid", "init", "fini", "start", "end", "command", "extdata")
    for row_id, nid, pid, init, fini, start, end, command, extdata in _rows(part, "info_process", *columns):
        if not isinstance(row_id, int):
            continue
        node, hostname = _node(nid, hostnames)
        grouped = grouped or parsed_facts(extdata).get("group_by_queue") is True
        processes.setdefault(
            row_id,
            Process(
                guid=part.guid,
                pid=pid if isinstance(pid, int) else NOT_RECORDED,
                node=node,
                hostname=hostname,
                command=_text(command),
                begin_ns=whole_number(init) or whole_number(start) or None,
                end_ns=whole_number(fini) or whole_number(end) or None,
            ),
        )
    if not processes:  # a part is one process by design: its rows belong together, whatever was lost
        node, hostname = _node(min(hostnames, default=None), hostnames)
        processes[NOT_RECORDED] = Process(guid=part.guid, pid=NOT_RECORDED, node=node, hostname=hostname)
    ids = tuple(sorted(processes))
    return Processes(ids, tuple(processes[i] for i in ids), grouped)


def read_agents(part: Part) -> Agents:
    """All agents of the part, in order of their row id."""
    hostnames = _node_names(part)
    agents: dict[int, Agent] = {}
    columns = ("id", "nid", "type", "absolute_index", "uuid", "name", "product_name", "model_name", "extdata")
    for row_id, nid, kind, index, chip, name, product, model, extdata in _rows(part, "info_agent", *columns):
        if not isinstance(row_id, int):
            continue
        facts = {"device_id": chip, "product_name": product or model, **parsed_facts(extdata)}
        node, _ = _node(nid, hostnames)
        number = index if isinstance(index, int) else row_id
        agents.setdefault(row_id, agent_from_facts(node, number, kind, facts, name))
    ids = tuple(sorted(agents))
    return Agents(ids, tuple(agents[i] for i in ids))


def read_kernels(part: Part, used: Sequence[int], process_of: dict[int, int]) -> tuple[list[Kernel], int]:
    """One kernel per id in ``used``, and how many of them the recording does not describe.

    ``process_of`` maps the row id of a process to its index.
    """
    wanted = set(used)
    objects = {row[0]: _text(row[1]) for row in _rows(part, "info_code_object", "id", "uri")}
    columns = (
        *("id", "pid", "code_object_id", "kernel_name", "display_name", "kernarg_segment_size"),
        *("group_segment_size", "sgpr_count", "arch_vgpr_count", "accum_vgpr_count"),
    )
    by_id: dict[int, Kernel] = {}
    for row in _rows(part, "info_kernel_symbol", *columns):
        row_id, pid, code_object, symbol, name, kernarg, lds, sgpr, vgpr, agpr = row
        if row_id not in wanted or row_id in by_id or not (name or symbol):
            continue
        by_id[row_id] = Kernel(
            name=display_name(str(name or symbol)),
            symbol=plain_symbol(_text(symbol)),
            process=process_of.get(pid, NOT_RECORDED),
            arch_vgpr=whole_number(vgpr),
            accum_vgpr=whole_number(agpr),
            sgpr=whole_number(sgpr),
            static_lds_bytes=whole_number(lds),
            kernarg_bytes=whole_number(kernarg),
            code_object=objects.get(code_object),
        )
    unknown = [i for i in used if i not in by_id]
    kernels = [by_id.get(i) or Kernel(name=f"unknown kernel (id {i})") for i in used]
    return kernels, len(unknown)


def read_names(part: Part, base: str, used: Int64Column) -> dict[int, str | None]:
    """Names of the used rows of ``info_stream`` or ``info_queue``; unknown ids are absent."""
    wanted = set(used.tolist())
    return {row[0]: _text(row[1]) for row in _rows(part, base, "id", "name") if row[0] in wanted}


def info_ids(part: Part, base: str) -> Int64Column:
    """All row ids of an info table."""
    return np.fromiter((r[0] for r in _rows(part, base, "id") if isinstance(r[0], int)), np.int64)


def read_strings(part: Part, ids: Int64Column) -> dict[int, str]:
    """The strings that ``ids`` refer to, by id; unknown ids are absent."""
    table = part.table("string")
    if table is None:
        return {}
    wanted = distinct_ids(ids)
    if len(wanted) > _MANY_STRINGS:
        known = set(wanted.tolist())
        rows = table.rows(part.connection, ("id", "string"))
        return {row[0]: str(row[1]) for row in rows if row[0] in known}
    strings: dict[int, str] = {}
    for number in wanted.tolist():
        for row in table.rows(part.connection, ("string",), f"id = {number:d}"):
            strings.setdefault(number, str(row[0]))
    return strings


# Up to this many strings are fetched one by one by their row id.
_MANY_STRINGS = 2000
