"""Several groups of counters in one run: kernel replay, and groups that take turns.

Kernel replay gives a record of every group for a launch, all under its dispatch id; a launch that can't be
replayed has the first group only. With rotation a launch has the group whose turn it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from rpl_testkit.rocpd_writer.rows import CounterRow, DispatchRow, RocpdContents
    from rpl_testkit.rocprofv3_standin.messages import Log
    from rpl_testkit.rocprofv3_standin.request.passes import Pass

__all__ = ["in_groups"]


def in_groups(contents: RocpdContents, one: Pass, failures: Mapping[str, str], log: Log) -> RocpdContents:
    """`contents` with the counters that each launch really has."""
    if len(one.groups) < 2:
        return contents
    rows: dict[tuple[int, str], CounterRow] = {(row.dispatch_id, row.name): row for row in contents.counters}
    counted = [d for d in contents.dispatches if any((d.dispatch_id, n) in rows for n in one.counters)]
    kept: list[CounterRow] = []
    graphs = 0
    for number, launch in enumerate(counted):
        if not one.replay:
            turn = number // one.group_interval % len(one.groups)
            kept += _of_group(rows, launch, one.groups[turn])
            continue
        declined = failures.get("replay_declined") if launch.kernel_id == 1 else None
        if declined:
            log.replay_declined(launch.dispatch_id, declined, len(one.groups))
        if launch.graph_exec_id:
            graphs += 1
            if graphs == 1:
                log.graph_not_replayed()
        passes = one.groups[:1] if declined or launch.graph_exec_id else one.groups
        for index, group in enumerate(passes):
            kept += [attrs.evolve(row, replay_pass=index) for row in _of_group(rows, launch, group)]
    return attrs.evolve(contents, counters=kept)


def _of_group(
    rows: Mapping[tuple[int, str], CounterRow], launch: DispatchRow, group: Sequence[str]
) -> list[CounterRow]:
    keys = ((launch.dispatch_id, name.partition(":")[0]) for name in group)
    return [rows[key] for key in keys if key in rows]
