"""Split a set of counters into passes that the hardware can hold.

Every hardware block counts a limited number of events at a time; a set that exceeds it aborts the profiler
inside the first dispatch. Groups that only mean something together stay together. Counters that can take
the machine down are refused unless the user insists.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rpl_core.text.table import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_core.model.device import CounterMap

__all__ = ["PassPlan", "RefusedCounter", "block_of", "plan_passes"]

#: Counters of one unknown block per pass: the only number that cannot exceed the block's limit.
UNKNOWN_BLOCK_LIMIT = 1


@frozen
class RefusedCounter:
    """A counter that no pass will read, and why."""

    counter: str
    reason: str


@frozen
class PassPlan:
    """Counters per pass, in the order of collection, and the counters that were refused."""

    passes: tuple[tuple[str, ...], ...]
    refused: tuple[RefusedCounter, ...] = ()


def block_of(counter: str, counter_map: CounterMap) -> str | None:
    """The hardware block of a counter: its longest matching prefix, ``None`` when no prefix matches."""
    matching = [
        (len(prefix), block) for prefix, block in counter_map.block_prefixes if counter.startswith(prefix)
    ]
    return max(matching)[1] if matching else None


def plan_passes(
    counter_map: CounterMap, counters: Sequence[str] | None = None, allow_dangerous: bool = False
) -> PassPlan:
    """Fill passes first-fit with ``counters`` (default: the recommended set), same-pass groups first.

    Deterministic: equal arguments give equal passes. Repeated counters are read once.
    """
    wanted = tuple(dict.fromkeys(counter_map.recommended if counters is None else counters))
    refused = [] if allow_dangerous else _dangerous(wanted, counter_map)
    blocked = {one.counter for one in refused}
    units = _units([counter for counter in wanted if counter not in blocked], counter_map)
    passes: list[list[str]] = []
    loads: list[Counter[str]] = []
    for unit in units:
        load = Counter(_slot(counter, counter_map) for counter in unit)
        overfull = _overfull(load, counter_map)
        if overfull is not None:
            refused.extend(RefusedCounter(counter, overfull) for counter in unit)
            continue
        _place(unit, load, passes, loads, counter_map)
    return PassPlan(tuple(_in_order(one, wanted) for one in passes), tuple(refused))


def _dangerous(wanted: Sequence[str], counter_map: CounterMap) -> list[RefusedCounter]:
    refused = []
    for counter in wanted:
        reasons = [reason for prefix, reason in counter_map.dangerous if counter.startswith(prefix)]
        if reasons:
            refused.append(RefusedCounter(counter, reasons[0]))
    return refused


def _units(wanted: Sequence[str], counter_map: CounterMap) -> list[tuple[str, ...]]:
    """What must be placed together: groups in the order of the map, then single counters."""
    left = list(wanted)
    units: list[tuple[str, ...]] = []
    for group in counter_map.same_pass:
        bases = {_base(counter) for counter in group}
        together = tuple(counter for counter in left if _base(counter) in bases)
        if together:
            units.append(together)
            left = [counter for counter in left if counter not in together]
    return units + [(counter,) for counter in left]


def _base(counter: str) -> str:
    return counter.removesuffix("_sum")


def _slot(counter: str, counter_map: CounterMap) -> str:
    return block_of(counter, counter_map) or ""


def _limit(block: str, counter_map: CounterMap) -> int:
    return counter_map.block_limits.get(block, UNKNOWN_BLOCK_LIMIT)


def _overfull(load: Counter[str], counter_map: CounterMap) -> str | None:
    for block, count in sorted(load.items()):
        limit = _limit(block, counter_map)
        if count > limit:
            return (
                f"{counted(count, 'counter')} must be read together, but block {block} holds {limit} per pass"
            )
    return None


def _place(
    unit: tuple[str, ...],
    load: Counter[str],
    passes: list[list[str]],
    loads: list[Counter[str]],
    counter_map: CounterMap,
) -> None:
    for one, used in zip(passes, loads, strict=True):
        if all(used[block] + count <= _limit(block, counter_map) for block, count in load.items()):
            one.extend(unit)
            used.update(load)
            return
    passes.append(list(unit))
    loads.append(Counter(load))


def _in_order(one: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    position = {counter: i for i, counter in enumerate(wanted)}
    return tuple(sorted(one, key=position.__getitem__))
