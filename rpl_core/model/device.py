"""A device model: what a GPU can do at best, which formula gives which quantity, and its architecture.

A device plugin returns one ``DeviceModel`` per product. Ceilings from a data sheet (``spec``), measured
on the user's device, and published by others are kept apart, each with its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

import attrs

from rpl_core.model.metric import Exactness
from rpl_core.values import frozen


@frozen(kw_only=True)
class RegisterFile:
    """Vector registers that one SIMD can hand to waves of one size.

    ``registers`` counts per lane (512 means 512 registers of ``wave_size`` lanes), ``granule`` is the
    allocation step, ``most_used`` what one wave may name, accumulation registers included where they share
    the file.
    """

    wave_size: int
    registers: int
    granule: int
    most_used: int


@frozen(kw_only=True)
class ScalarFile:
    """Scalar registers of one SIMD, their allocation step, and the most that one wave can be given.

    ``compiler_waves`` is the compiler's own table where it differs: (most registers, waves per SIMD), most
    waves first. Above the last entry the waves of the last entry hold.
    """

    registers: int
    granule: int
    most_used: int
    compiler_waves: tuple[tuple[int, int], ...] = ()


@frozen(kw_only=True)
class OccupancyLimits:
    """What can reside at once, per compute unit unless the name says otherwise.

    ``scalar_file`` is ``None`` where every wave owns a full set of scalar registers. ``encodable_vgprs`` is
    what an instruction can name without accumulation registers, which start at a multiple of
    ``accum_offset_step``. ``cus_per_workgroup_processor`` is 1 where a workgroup always stays on one unit.
    ``slot_per_wave``: a workgroup of a single wave takes a workgroup slot too.
    """

    register_files: tuple[RegisterFile, ...]
    scalar_file: ScalarFile | None
    has_accum_vgprs: bool
    waves_per_simd: int
    simds_per_cu: int
    workgroup_slots_per_cu: int
    lds_bytes_per_cu: int
    lds_granule_bytes: int
    max_lds_bytes_per_workgroup: int
    max_workgroup_size: int
    source: str
    cus_per_workgroup_processor: int = 1
    encodable_vgprs: int = 256
    accum_offset_step: int = 4
    slot_per_wave: bool = False

    def register_file(self, wave_size: int) -> RegisterFile | None:
        """The file as waves of ``wave_size`` lanes see it; ``None`` if there are no such waves."""
        return next((file for file in self.register_files if file.wave_size == wave_size), None)


@frozen(kw_only=True)
class PackedArithmetic:
    """Packed vector instructions of one data type, and how many operations hide behind a counted one."""

    data_type: str
    operations_per_counted: int
    source: str


@frozen(kw_only=True)
class MatrixRates:
    """Floating-point or integer operations of dense matrix instructions per cycle and SIMD, by input type."""

    operations_per_cycle: tuple[tuple[str, int], ...]
    source: str

    def rate(self, data_type: str) -> int | None:
        return dict(self.operations_per_cycle).get(data_type)


@frozen(kw_only=True)
class RecordQuirks:
    """What recordings of this instruction set get wrong, and what shows it.

    With ``vgprs_may_be_halved`` some profiler releases record half of the allocated vector registers and no
    accumulation registers: a record without them says nothing, and one count that is no multiple of
    ``vgpr_granule`` discredits all of its recording. ``wave_counter`` counts the waves
    launched; launches for which it is 1 % off are not used. ``pass_local_counters`` are prefixes of counters
    that mean another quantity in every pass, and can't be joined with those of other passes.
    """

    vgprs_may_be_halved: bool = False
    vgpr_granule: int | None = None
    wave_counter: str | None = None
    pass_local_counters: tuple[str, ...] = ()
    source: str = ""


@frozen(kw_only=True)
class Architecture:
    """Facts of the instruction set ``name`` that all of its products share, each part with its source."""

    name: str
    occupancy: OccupancyLimits | None = None
    packed: tuple[PackedArithmetic, ...] = ()
    matrix_rates: MatrixRates | None = None
    record_quirks: RecordQuirks = RecordQuirks()
    source: str = ""

    def packed_arithmetic(self, data_type: str) -> PackedArithmetic | None:
        return next((packed for packed in self.packed if packed.data_type == data_type), None)


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
        origins = {ceiling.origin for ceiling in self.compute_ceilings} | {
            ceiling.origin for ceiling in self.memory_ceilings
        }
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
