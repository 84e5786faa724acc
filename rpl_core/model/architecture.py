"""What holds for every product of an instruction set: occupancy limits, rates, and quirks of recordings.

A device plugin puts an ``Architecture`` into its ``DeviceModel``. ``None`` means unknown, never zero.
"""

from __future__ import annotations

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
        return next((one for one in self.packed if one.data_type == data_type), None)
