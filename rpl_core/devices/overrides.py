"""Ceilings after the user's ``--clock-mhz`` and ``--memory-bandwidth-gbps``."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from rpl_core.errors import UsageError
from rpl_core.model.device import CeilingOrigin, ComputeCeiling, DeviceModel, MemoryCeiling


def with_ceilings(device: DeviceModel, added: Sequence[ComputeCeiling | MemoryCeiling]) -> DeviceModel:
    """``device`` with ceilings that plugins add; one for the same thing and origin takes its place."""
    compute = {(c.data_type, c.pipe, c.origin): c for c in device.compute_ceilings}
    memory = {(c.level, c.origin): c for c in device.memory_ceilings}
    for ceiling in added:
        if isinstance(ceiling, ComputeCeiling):
            compute[ceiling.data_type, ceiling.pipe, ceiling.origin] = ceiling
        else:
            memory[ceiling.level, ceiling.origin] = ceiling
    if not added:
        return device
    return attrs.evolve(
        device, compute_ceilings=tuple(compute.values()), memory_ceilings=tuple(memory.values())
    )


def with_overrides(
    device: DeviceModel, *, clock_mhz: float | None = None, memory_bandwidth_gbps: float | None = None
) -> DeviceModel:
    """``device`` with its data-sheet ceilings scaled or replaced; measured ceilings stay what they are.

    Raises ``UsageError`` when the clock can't be scaled because the device's own clock is unknown.
    """
    if clock_mhz is not None:
        device = _at_clock(device, clock_mhz)
    if memory_bandwidth_gbps is not None:
        device = _with_bandwidth(device, memory_bandwidth_gbps)
    return device


def _at_clock(device: DeviceModel, clock_mhz: float) -> DeviceModel:
    if device.clock_mhz is None:
        raise UsageError(
            f"--clock-mhz can't scale the ceilings: the clock of {device.name} is unknown",
            next_step="name the product with --device",
        )
    ratio = clock_mhz / device.clock_mhz
    note = f"scaled from {device.clock_mhz:g} to {clock_mhz:g} MHz (--clock-mhz)"
    compute = tuple(
        attrs.evolve(c, peak_gflops=c.peak_gflops * ratio, source=f"{c.source}; {note}")
        if c.origin is CeilingOrigin.SPEC
        else c
        for c in device.compute_ceilings
    )
    memory = tuple(
        attrs.evolve(c, peak_gbps=c.peak_gbps * ratio, source=f"{c.source}; {note}")
        if c.origin is CeilingOrigin.SPEC and c.on_engine_clock
        else c
        for c in device.memory_ceilings
    )
    return attrs.evolve(
        device,
        clock_mhz=clock_mhz,
        compute_ceilings=compute,
        memory_ceilings=memory,
        overrides=(*device.overrides, f"clock_mhz={clock_mhz:g}"),
    )


def _with_bandwidth(device: DeviceModel, peak_gbps: float) -> DeviceModel:
    given = MemoryCeiling("hbm", peak_gbps, CeilingOrigin.SPEC, "given by the user (--memory-bandwidth-gbps)")
    others = tuple(c for c in device.memory_ceilings if (c.level, c.origin) != ("hbm", CeilingOrigin.SPEC))
    return attrs.evolve(
        device,
        memory_ceilings=(given, *others),
        overrides=(*device.overrides, f"memory_bandwidth_gbps={peak_gbps:g}"),
    )
