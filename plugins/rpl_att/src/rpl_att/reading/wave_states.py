"""``wstates<k>.json``: how many waves of the target CU are in state k over time.

See docs/reference/thread-trace.md, 2.8.
"""

from __future__ import annotations

from rpl_att.reading.folder import TraceFolder
from rpl_att.reading.json_values import mapping, rows, whole
from rpl_core.errors import BadDataError
from rpl_core.values import frozen

STATE_NAMES = {1: "idle", 2: "exec", 3: "wait", 4: "stall"}


@frozen
class StateSteps:
    """A step function: ``counts[i]`` waves from ``clocks[i]`` on."""

    state: str
    clocks: tuple[int, ...]
    counts: tuple[int, ...]


def read_state_steps(folder: TraceFolder) -> tuple[StateSteps, ...]:
    """The states for which a file exists, in the order idle, exec, wait, stall."""
    steps = []
    for number, name in STATE_NAMES.items():
        file = f"wstates{number}.json"
        table = folder.table(file)
        if table is None:
            continue
        path = folder.path / file
        document = mapping(table, path, "the document")
        clocks = [whole(v, path, "time") for v in rows(document.get("time"), path, "time")]
        counts = [whole(v, path, "state") for v in rows(document.get("state"), path, "state")]
        if len(clocks) != len(counts):
            raise BadDataError(f"{path}: time and state differ in length")
        steps.append(StateSteps(name, tuple(clocks), tuple(counts)))
    return tuple(steps)
