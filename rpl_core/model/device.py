"""A device model: what a GPU can do at best, and which counter formula gives which quantity.

A device plugin returns one ``DeviceModel`` per product. Ceilings from a data sheet (``spec``), measured
on the user's device, and published by others are kept apart, each with its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

import attrs

from rpl_core.model.architecture import Architecture
from rpl_core.model.origin import Exactness
from rpl_core.values import frozen


class CeilingOrigin(str, Enum):
    SPEC = "spec"
    MEASURED = "measured"  # on the device of the recording, or one of the user's
    PUBLISHED = "published"  # measured by others on a device of theirs


class Pipe(str, Enum):
    VALU = "valu"
    VALU_PACKED = "valu_packed"
    MFMA = "mfma"


@frozen
class ComputeCeiling:
    """Highest arithmetic rate of a data type on a pipe. Types are names: "F64", "BF16", "I8", any other."""

    data_type: str
    pipe: Pipe
    peak_gflops: float
    origin: CeilingOrigin
    source: str

    def impossible(self) -> str | None:
        """Why no GPU has this ceiling; plugins that give it are told."""
        return None if self.peak_gflops > 0 else f"peak_gflops is {self.peak_gflops}, which is no rate"


@frozen
class MemoryCeiling:
    """Highest bandwidth of a memory level: "hbm", "llc", "l2", "vl1d", "lds".

    ``on_engine_clock``: it is bytes per engine clock, so that it follows ``--clock-mhz``.
    """

    level: str
    peak_gbps: float
    origin: CeilingOrigin
    source: str
    on_engine_clock: bool = False

    def impossible(self) -> str | None:
        """Why no GPU has this ceiling; plugins that give it are told."""
        return None if self.peak_gbps > 0 else f"peak_gbps is {self.peak_gbps}, which is no rate"


@frozen
class Refinement:
    """The exactness that a formula reaches when ``zero_when`` (same language) evaluates to zero.

    Example: FLOPs counted per instruction are exact when there was no such instruction.
    """

    zero_when: str
    exactness: Exactness


@frozen
class Formula:
    """One way to compute a quantity from counters.

    ``expression`` is arithmetic (``+ - * /``) over counter names, the device constants ``xcd_count``,
    ``compute_units``, ``wave_size``, ``simd_per_cu``, ``max_waves_per_simd`` and ``fp32_valu_width``, and
    ``max0(x)`` (clamp at zero). Counter names stand for the sum over hardware instances and over the
    dispatches concerned, so an additive quantity must be linear in them. For ``Exactness.INTERVAL`` the
    expression is the lower end and ``upper_expression`` the upper one; equal ends are exact.

    With ``absent_as_zero`` a counter that was not recorded counts as zero as long as one other was, and
    the result is a lower bound: only for expressions that no counter can make smaller.

    ``consistent`` holds terms of ``max0`` that counters which agree can't make negative: where a launch in
    which all of them were read does, the result is an estimate.
    """

    expression: str
    exactness: Exactness
    source: str
    upper_expression: str | None = None
    absent_as_zero: bool = False
    refinements: tuple[Refinement, ...] = ()
    note: str | None = None  # what a reader must know to use the figure
    consistent: str | None = None


@frozen
class Quantity:
    """A physical quantity by name, with its formulas in order of preference.

    ``sum_of`` names quantities that add up to this one; it is used when no formula applies, and a part
    that is unknown makes the sum a lower bound. ``additive`` quantities (bytes, FLOPs) add up over
    launches; the others are ratios, the same per launch as over all.
    """

    name: str  # e.g. "hbm_read_bytes", "valu_flops_f32", "active_lanes"
    unit: str
    formulas: tuple[Formula, ...] = ()
    sum_of: tuple[str, ...] = ()
    additive: bool = True


@frozen
class TypedWork:
    """The quantity that counts the operations of one data type on one pipe.

    Operations that are not ``floating`` have a ceiling, but are no FLOPs.
    """

    quantity: str
    data_type: str
    pipe: Pipe
    floating: bool = True


def _read_only(value: Mapping[str, int]) -> Mapping[str, int]:
    return MappingProxyType(dict(value))


@frozen
class CounterMap:
    """What the counters of an architecture mean and how they may be collected.

    ``recommended`` is the set that a roofline run collects; ``block_limits`` bounds what one pass can hold
    (counters per hardware block); the longest matching entry of ``block_prefixes`` gives a counter's block.
    ``dangerous`` maps counter-name prefixes to the reason why they are refused by default.

    ``work`` names the quantities of arithmetic by data type, in the order in which they are shown. Left
    empty, quantities named ``valu_flops_<type>``, ``mfma_flops_<type>`` or ``mfma_ops_<type>`` are taken for
    it. ``memory_bytes`` are the quantities that give the traffic of memory, the best one first; those behind
    the first are used with a warning.
    """

    quantities: tuple[Quantity, ...]
    recommended: tuple[str, ...]
    same_pass: tuple[tuple[str, ...], ...] = ()  # groups that must be read in one pass
    block_limits: Mapping[str, int] = attrs.field(factory=dict, converter=_read_only)
    block_prefixes: tuple[tuple[str, str], ...] = ()  # (counter prefix, block)
    dangerous: tuple[tuple[str, str], ...] = ()  # (counter prefix, reason)
    work: tuple[TypedWork, ...] = ()
    memory_bytes: tuple[str, ...] = ("hbm_bytes",)


@frozen
class DeviceModel:
    """One GPU product. ``None`` means the fact is unknown, never zero.

    ``name`` is what ``--device`` accepts for exactly this product, ``architecture`` selects the family.
    ``chip_ids`` are PCI device ids (physical and virtual function).
    """

    name: str
    architecture: str
    product: str
    chip_ids: tuple[int, ...]
    compute_units: int | None
    xcd_count: int | None
    simd_per_cu: int
    wave_size: int
    max_waves_per_simd: int
    lds_bytes_per_cu: int
    clock_mhz: float | None
    l2_bytes: int | None
    llc_bytes: int | None
    l2_channels: int | None
    fp32_valu_width: int | None
    compute_ceilings: tuple[ComputeCeiling, ...]
    memory_ceilings: tuple[MemoryCeiling, ...]
    counter_map: CounterMap
    partition: str | None = None  # compute partition this model describes, e.g. "SPX"
    source: str = ""
    unknown_facts: tuple[str, ...] = ()  # why a field is None
    impossible_facts: tuple[str, ...] = ()  # what a recording states that no such device has; not used
    overrides: tuple[str, ...] = ()  # what the user changed, for provenance
    architecture_facts: Architecture | None = None  # occupancy limits, rates, quirks of records

    @property
    def benchmarked(self) -> CeilingOrigin:
        """The origin of what stands beside the data sheet: measured here, else published by others."""
        origins = {one.origin for one in self.compute_ceilings} | {one.origin for one in self.memory_ceilings}
        return CeilingOrigin.MEASURED if CeilingOrigin.MEASURED in origins else CeilingOrigin.PUBLISHED

    def compute_ceiling(self, data_type: str, pipe: Pipe, origin: CeilingOrigin) -> ComputeCeiling | None:
        for ceiling in self.compute_ceilings:
            if (ceiling.data_type, ceiling.pipe, ceiling.origin) == (data_type, pipe, origin):
                return ceiling
        return None

    def memory_ceiling(self, level: str, origin: CeilingOrigin) -> MemoryCeiling | None:
        for ceiling in self.memory_ceilings:
            if (ceiling.level, ceiling.origin) == (level, origin):
                return ceiling
        return None
