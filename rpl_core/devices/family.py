"""What all products of an architecture have in common: the device of a recording that names no product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from rpl_core.model.device import ComputeCeiling, DeviceModel, MemoryCeiling

_OPTIONAL = ("compute_units", "xcd_count", "clock_mhz", "l2_bytes", "llc_bytes", "l2_channels", "partition")


def common_model(architecture: str, models: Sequence[DeviceModel]) -> DeviceModel:
    """A model that holds only facts on which all ``models`` agree; the others are ``None``.

    Ceilings are kept where every product has the same figure.
    """
    first = models[0]
    differing = [name for name in _OPTIONAL if len({getattr(m, name) for m in models}) > 1]
    names = ", ".join(m.name for m in models)
    unknown = (f"{', '.join(differing)} (differs between products)",) if differing else ()
    no_longer_known: dict[str, Any] = dict.fromkeys(differing)
    return attrs.evolve(
        first,
        name=architecture,
        product=f"one of {names}",
        chip_ids=tuple(sorted({chip for m in models for chip in m.chip_ids})),
        compute_ceilings=_common_compute(models),
        memory_ceilings=_common_memory(models),
        unknown_facts=unknown,
        **no_longer_known,
    )


def _common_compute(models: Sequence[DeviceModel]) -> tuple[ComputeCeiling, ...]:
    shared = set(models[0].compute_ceilings)
    for model in models[1:]:
        shared &= set(model.compute_ceilings)
    return tuple(c for c in models[0].compute_ceilings if c in shared)


def _common_memory(models: Sequence[DeviceModel]) -> tuple[MemoryCeiling, ...]:
    shared = set(models[0].memory_ceilings)
    for model in models[1:]:
        shared &= set(model.memory_ceilings)
    return tuple(c for c in models[0].memory_ceilings if c in shared)
