"""Counter rows as a profiler would record them: one value per hardware instance, plus derived ones.

Instances of an MI300X in SPX mode (docs/reference/counters.md, 1.2): GRBM 8 XCDs, SQ 32 shader engines, TCC
128 channels, TCP and TA one per CU. Derived counters (`*_sum`, FETCH_SIZE, WRITE_SIZE) have one value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rpl_testkit.rocpd_writer.rows import CounterDefinitionRow, CounterRow
from rpl_testkit.synthetic_recording.counter_formulas import PER_INSTANCE_CYCLES, counter_names, counter_total

if TYPE_CHECKING:
    from rpl_testkit.synthetic_recording.counter_formulas import DispatchLoad

__all__ = ["available_counters", "base_counters", "counter_block", "counter_definition", "counter_row"]

_INSTANCES: Final = {"GRBM": 8, "SQ": 32, "TCC": 128, "TCP": 304, "TA": 304}
#: Blocks of which the SDK offers `X_sum` for a basic counter X; of SQ there is only SQ_WAVES_sum.
_SUMMED_BLOCKS: Final = ("TCC", "TCP", "TA")
_DERIVED_SIZES: Final = {
    "FETCH_SIZE": ("TCC_BUBBLE", "TCC_EA0_RDREQ", "TCC_EA0_RDREQ_32B"),
    "WRITE_SIZE": ("TCC_EA0_WRREQ", "TCC_EA0_WRREQ_64B"),
}


def counter_block(name: str) -> str:
    """Return the hardware block that counts `name` (SQC shares SQ)."""
    return name.split("_", 1)[0]


def base_counters(name: str) -> tuple[str, ...]:
    """Return the basic counters that have to be programmed to read `name`."""
    if name in _DERIVED_SIZES:
        return _DERIVED_SIZES[name]
    return (name[:-4],) if name.endswith("_sum") else (name,)


def available_counters() -> tuple[str, ...]:
    """Return every counter the synthetic device offers, sorted."""
    basic = counter_names()
    summed = [f"{name}_sum" for name in basic if counter_block(name) in _SUMMED_BLOCKS]
    return tuple(sorted({*basic, *summed, "SQ_WAVES_sum", *_DERIVED_SIZES}))


def counter_definition(name: str, agent: int) -> CounterDefinitionRow:
    """Describe `name` for the counter table of a recording."""
    bases = base_counters(name)
    derived = bases != (name,)
    return CounterDefinitionRow(
        name=name,
        agent=agent,
        block="" if derived else counter_block(name),
        description=f"synthetic {name}",
        expression=f"reduce({bases[0]},sum)" if name.endswith("_sum") else "",
        is_derived=derived,
    )


def counter_row(dispatch_id: int, name: str, load: DispatchLoad) -> CounterRow:
    """Return the recorded values of `name` for one dispatch; KeyError for an unknown counter."""
    return CounterRow(dispatch_id, name, _values(name, load))


def _values(name: str, load: DispatchLoad) -> tuple[float, ...]:
    if name == "FETCH_SIZE":
        return (_fetch_bytes(load) / 1024,)
    if name == "WRITE_SIZE":
        return (_write_bytes(load) / 1024,)
    if name.endswith("_sum"):
        return (counter_total(name[:-4], load),)
    total, instances = counter_total(name, load), _INSTANCES[counter_block(name)]
    if name in PER_INSTANCE_CYCLES:
        return (total,) * instances
    each, rest = divmod(int(total), instances)
    return tuple(float(each + (i < rest)) for i in range(instances))


def _fetch_bytes(load: DispatchLoad) -> float:
    large, every, small = (counter_total(name, load) for name in _DERIVED_SIZES["FETCH_SIZE"])
    return 128 * large + 64 * (every - large - small) + 32 * small


def _write_bytes(load: DispatchLoad) -> float:
    every, full = (counter_total(name, load) for name in _DERIVED_SIZES["WRITE_SIZE"])
    return 64 * full + 32 * (every - full)
