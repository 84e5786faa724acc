"""Recognise the gfx942 product behind recorded agents: by chip id, by product name, by size.

MI300X and MI325X have the same number of CUs, so a recording without chip id and name leaves both open;
then only what they share is stated. Agents of other architectures are not ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rpl_gfx942.architecture import ARCHITECTURE
from rpl_gfx942.device import (
    NULLABLE,
    GpuSize,
    product_model,
    resized_product,
    sized_model,
    with_reason,
)
from rpl_gfx942.partitions import partition_of
from rpl_gfx942.products import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_core.model.device import DeviceModel
    from rpl_core.model.trace import Agent
    from rpl_gfx942.products import Product

__all__ = ["detect_device"]


def detect_device(agents: tuple[Agent, ...]) -> DeviceModel | None:
    """The one model that describes all ``agents``; ``None`` when they are not all the same gfx942 GPU."""
    models = [_model_of(agent) for agent in agents if agent.kind == "GPU"]
    if not models or models[0] is None or any(model != models[0] for model in models):
        return None
    return models[0]


def _model_of(agent: Agent) -> DeviceModel | None:
    named = _by_name(agent)
    architecture = (agent.architecture or "").split(":")[0]
    if architecture != ARCHITECTURE and (architecture or not named):
        return None
    models = [_as_described(product, agent) for product in named or _by_size(agent)]
    if len(models) == 1:
        return models[0]
    return _shared_facts(models, agent)


def _by_name(agent: Agent) -> Sequence[Product]:
    """The product that the chip id names, else the product name."""
    by_chip = [product for product in PRODUCTS if agent.chip_id in product.chip_ids]
    label = (agent.product or "").upper()
    return by_chip or [product for product in PRODUCTS if product.name.upper() in label]


def _by_size(agent: Agent) -> Sequence[Product]:
    """Products of that size. A chip id that nobody knows is another product, whatever its size."""
    if agent.chip_id is not None:
        return []
    return [product for product in PRODUCTS if partition_of(product, agent) is not None]


def _as_described(product: Product, agent: Agent) -> DeviceModel:
    partition = partition_of(product, agent)
    if partition is None:
        return resized_product(product, _size_of(agent))
    return product_model(product, partition, _clock_of(agent))


def _size_of(agent: Agent) -> GpuSize:
    return GpuSize(agent.compute_units, agent.xcd_count, _clock_of(agent))


def _clock_of(agent: Agent) -> float | None:
    return float(agent.clock_mhz) if agent.clock_mhz else None


def _shared_facts(models: Sequence[DeviceModel], agent: Agent) -> DeviceModel:
    """A gfx942 of unknown product: the driver's figures, and what all ``models`` agree on."""
    bare = sized_model(ARCHITECTURE, "a gfx942 GPU", _size_of(agent))
    if not models:
        return with_reason(bare, "the recording names no known product, and none has that size")
    names = " or ".join(model.product for model in models)
    first = models[0]
    common = attrs.evolve(
        bare,
        product=names,
        compute_ceilings=tuple(c for c in first.compute_ceilings if _in_all(c, models, "compute_ceilings")),
        memory_ceilings=tuple(c for c in first.memory_ceilings if _in_all(c, models, "memory_ceilings")),
        **{name: _common(models, name) for name in (*NULLABLE, "partition")},
    )
    return with_reason(common, f"chip id not recorded: it is {names}, which differ in this")


def _common(models: Sequence[DeviceModel], name: str) -> Any:
    values = {getattr(model, name) for model in models}
    return values.pop() if len(values) == 1 else None


def _in_all(ceiling: object, models: Sequence[DeviceModel], name: str) -> bool:
    return all(ceiling in getattr(model, name) for model in models)
