"""The options of the analysis; each object is also the key to its value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from rpl_core.config import flag, one_of, positive
from rpl_core.errors import UsageError
from rpl_core.interfaces.options import CommandOption, OptionForm, SettingKind

if TYPE_CHECKING:
    from rpl_core.model.device import ComputeCeiling, DeviceModel, MemoryCeiling

Ceiling = TypeVar("Ceiling", "ComputeCeiling", "MemoryCeiling")

_ANALYSING = ("profile", "analyze")


def at_clock(device: DeviceModel, clock_mhz: float) -> DeviceModel:
    """``device`` with its data-sheet ceilings at another engine clock; measured ones stay what they are.

    Raises ``UsageError`` when they can't be scaled because the device's own clock is unknown.
    """
    from rpl_core.model.device import CeilingOrigin

    if device.clock_mhz is None:
        raise UsageError(
            f"--clock-mhz can't scale the ceilings: the clock of {device.name} is unknown",
            next_step="name the product with --device",
        )
    ratio = clock_mhz / device.clock_mhz
    note = f"scaled from {device.clock_mhz:g} to {clock_mhz:g} MHz (--clock-mhz)"

    def scaled(ceiling: Ceiling, peak: str) -> Ceiling:
        """One of the data sheet follows the engine clock, as everything does that computes."""
        if ceiling.origin is not CeilingOrigin.SPEC or not getattr(ceiling, "on_engine_clock", True):
            return ceiling
        changed: dict[str, Any] = {peak: getattr(ceiling, peak) * ratio}
        return attrs.evolve(ceiling, source=f"{ceiling.source}; {note}", **changed)

    return attrs.evolve(
        device,
        clock_mhz=clock_mhz,
        compute_ceilings=tuple(scaled(c, "peak_gflops") for c in device.compute_ceilings),
        memory_ceilings=tuple(scaled(c, "peak_gbps") for c in device.memory_ceilings),
        overrides=(*device.overrides, f"clock_mhz={clock_mhz:g}"),
    )


def with_bandwidth(device: DeviceModel, peak_gbps: float) -> DeviceModel:
    """``device`` with another HBM ceiling in place of its data sheet's."""
    from rpl_core.model.device import CeilingOrigin, MemoryCeiling

    given = MemoryCeiling("hbm", peak_gbps, CeilingOrigin.SPEC, "given by the user (--memory-bandwidth-gbps)")
    others = tuple(c for c in device.memory_ceilings if (c.level, c.origin) != ("hbm", CeilingOrigin.SPEC))
    return attrs.evolve(
        device,
        memory_ceilings=(given, *others),
        overrides=(*device.overrides, f"memory_bandwidth_gbps={peak_gbps:g}"),
    )


CLOCK: CommandOption[float | None] = CommandOption(
    name="clock-mhz",
    commands=_ANALYSING,
    parse=positive,
    default=None,
    help="Engine clock for the compute ceilings.",
    meaning="engine clock for the compute ceilings instead of the maximum",
    metavar="MHZ",
    setting=True,
    kind=SettingKind.VALUE,
    recorded=True,
    change_device=at_clock,
)
BANDWIDTH: CommandOption[float | None] = CommandOption(
    name="memory-bandwidth-gbps",
    commands=_ANALYSING,
    parse=positive,
    default=None,
    help="Memory ceiling of your device.",
    meaning="memory ceiling instead of the data sheet's",
    metavar="GBPS",
    setting=True,
    kind=SettingKind.VALUE,
    recorded=True,
    change_device=with_bandwidth,
)
FLOP_MODEL: CommandOption[str] = CommandOption(
    name="flop-model",
    commands=_ANALYSING,
    parse=one_of("per_op", "valu_width"),
    default="per_op",
    help="per_op (default) or valu_width, see ROOFLINE_DESIGN.",
    meaning="how FLOPs are counted",
    metavar="MODEL",
    setting=True,
    kind=SettingKind.VALUE,
    recorded=True,
)
OCCUPANCY_MODE: CommandOption[str] = CommandOption(
    name="occupancy-mode",
    commands=_ANALYSING,
    parse=one_of("hardware", "llvm"),
    default="hardware",
    help="hardware (default) or llvm: LDS granule.",
    meaning="LDS granule of the occupancy model",
    metavar="MODE",
    setting=True,
    kind=SettingKind.VALUE,
    recorded=True,
)
STRICT: CommandOption[bool] = CommandOption(
    name="strict",
    commands=_ANALYSING,
    parse=flag,
    default=False,
    help="No estimates where a measurement is missing.",
    meaning="no estimates where a measurement is missing",
    form=OptionForm.FLAG,
    setting=True,
    kind=SettingKind.VALUE,
    recorded=True,
)
COPIES: CommandOption[bool] = CommandOption(
    name="copies",
    commands=(*_ANALYSING, "what-if"),
    parse=flag,
    default=True,
    help="Whether copies are work of the critical path (default) or time between kernels.",
    meaning="copies are work of the critical path",
    form=OptionForm.SWITCH,
    setting=True,
    kind=SettingKind.VALUE,
    recorded=True,
)
FULL_GRAPH: CommandOption[bool] = CommandOption(
    name="full",
    commands=_ANALYSING,
    parse=flag,
    default=False,
    help="Write every node and edge of the graph to dag_full.npz too.",
    form=OptionForm.FLAG,
)

NAMES: CommandOption[str] = CommandOption(
    name="names",
    commands=(*_ANALYSING, "report", "compare", "what-if"),
    parse=one_of("short", "full", "mangled"),
    default="short",
    help="Kernel names: short (default), full, or mangled as the linker has them.",
    meaning="how kernels are named: short, full or mangled",
    group="Output",
    values=lambda _run: ("short", "full", "mangled"),
    metavar="FORM",
    setting=True,
    kind=SettingKind.VALUE,
)

ANALYSIS_OPTIONS: tuple[CommandOption[Any], ...] = (
    CLOCK,
    BANDWIDTH,
    FLOP_MODEL,
    OCCUPANCY_MODE,
    STRICT,
    COPIES,
    FULL_GRAPH,
    NAMES,
)
