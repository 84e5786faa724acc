"""Families of AMD GPUs: products of one instruction set, what tells them apart, and rates that they share.

A device plugin writes one ``Family`` down; ``models`` makes device models of it and ``detection`` finds the
product behind recorded agents. What is unknown is ``None``, with a reason beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from rpl_core.model.device import Architecture, ComputeCeiling, CounterMap, MemoryCeiling, Pipe
from rpl_core.values import frozen

__all__ = ["ByteRate", "ComputeRate", "Family", "Product"]


@frozen
class ComputeRate:
    """Operations of one data type on one pipe per clock and compute unit."""

    data_type: str
    pipe: Pipe
    per_clock: int
    source: str


@frozen
class ByteRate:
    """Bytes of one memory level per clock, for each ``per``: "CU" or "channel" (of the L2 cache)."""

    level: str
    per: str
    width: int
    source: str


@frozen(kw_only=True)
class Product:
    """One product with all of its compute units; ``partitions`` maps a mode to its number of XCDs.

    ``xcd_count`` is 1 where there is one die, and the die of a product that shows as several GPUs is a
    product by itself. ``names`` are what its name in a recording contains; left empty, ``name`` in capitals.
    ``published_in`` holds ceilings that were measured in another partition than the whole product.
    """

    name: str
    product: str
    source: str
    chip_ids: tuple[int, ...] = ()  # PCI device ids: physical and virtual function
    names: tuple[str, ...] = ()
    xcd_count: int | None = None
    units_per_xcd: int | None = None
    clock_mhz: float | None = None
    l2_bytes: int | None = None
    llc_bytes: int | None = None
    l2_channels: int | None = None
    hbm: MemoryCeiling | None = None
    partitions: tuple[tuple[str, int], ...] = ()
    published_memory: tuple[MemoryCeiling, ...] = ()
    published_compute: tuple[ComputeCeiling, ...] = ()
    published_in: tuple[tuple[str, MemoryCeiling], ...] = ()
    unknown_reason: str = ""

    @property
    def compute_units(self) -> int | None:
        if self.xcd_count is None or self.units_per_xcd is None:
            return None
        return self.xcd_count * self.units_per_xcd

    @property
    def known_as(self) -> tuple[str, ...]:
        """Words that name it in a recording, in capitals."""
        return tuple(name.upper() for name in self.names) or (self.name.upper(),)


@frozen(kw_only=True)
class Family:
    """An instruction set with its products, as a device plugin knows it.

    ``absent`` says why a fact of a device model is ``None`` on every product, such as a cache that the
    family does not have.
    """

    architecture: Architecture
    wave_size: int
    counter_map: CounterMap
    products: tuple[Product, ...]
    compute_rates: tuple[ComputeRate, ...] = ()
    byte_rates: tuple[ByteRate, ...] = ()
    l2_bytes_per_xcd: int | None = None
    l2_channels_per_xcd: int | None = None
    fp32_valu_width: int | None = None
    absent: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def name(self) -> str:
        return self.architecture.name
