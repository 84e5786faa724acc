"""Names of the quantities that the roofline takes from a device's counter map.

A device plugin that wants a roofline defines those that its counters give; the rest is unknown there. Which
quantities count the operations of which data type is the device's to say (``CounterMap.work``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.model.device import Pipe, TypedWork

if TYPE_CHECKING:
    from rpl_core.model.device import CounterMap

__all__ = ["CACHES", "LEVELS", "PER_OP", "VALU_WIDTH", "additive", "typed_work"]

#: Model name -> quantity of all floating-point operations.
PER_OP = "flops"
VALU_WIDTH = "flops_valu_width"

#: (quantity, memory level)
LEVELS: tuple[tuple[str, str], ...] = (
    ("hbm_bytes", "hbm"),
    ("l2_bytes", "l2"),
    ("vl1d_bytes", "vl1d"),
    ("lds_bytes_moved", "lds"),
)

CACHES: tuple[str, ...] = ("l2_hit_rate", "vl1d_hit_rate", "sl1d_hit_rate", "l1i_hit_rate")


def additive(counter_map: CounterMap) -> tuple[str, ...]:
    """Quantities that add up over kernels."""
    names = (
        PER_OP,
        VALU_WIDTH,
        *(work.quantity for work in typed_work(counter_map)),
        *(name for name, _ in LEVELS),
        *counter_map.memory_bytes,
    )
    return tuple(dict.fromkeys(names))


def typed_work(counter_map: CounterMap) -> tuple[TypedWork, ...]:
    """The arithmetic by data type, as the device says or the names of its quantities tell."""
    named = (_work_by_name(quantity.name) for quantity in counter_map.quantities)
    return counter_map.work or tuple(work for work in named if work is not None)


def _work_by_name(quantity: str) -> TypedWork | None:
    pipe, _, rest = quantity.partition("_")
    counted, _, data_type = rest.partition("_")
    if pipe not in (Pipe.VALU.value, Pipe.MFMA.value) or counted not in ("flops", "ops") or not data_type:
        return None
    return TypedWork(quantity, data_type.upper(), Pipe(pipe), floating=counted == "flops")
