"""What a reader of the roofline should know: fallbacks, other launch counts, ceilings exceeded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.roofline.model import RooflineStatus
from rpl_analysis.roofline.work import untyped_flops
from rpl_analysis.text.names import shown_names
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_analysis.roofline.model import KernelRoofline, RooflineResult
    from rpl_core.model.device import DeviceModel

__all__ = ["roofline_diagnostics"]


def roofline_diagnostics(result: RooflineResult, device: DeviceModel) -> tuple[Diagnostic, ...]:
    """Diagnostics about all kernels together, in a fixed order."""
    if result.status is not RooflineStatus.AVAILABLE:
        return (_unusable(result),)
    called = shown_names(kernel.name for kernel in result.kernels.values())
    kernels = tuple(attrs.evolve(kernel, name=called[kernel.name]) for kernel in result.kernels.values())
    return (
        *_fallbacks(kernels, device),
        *_untyped(kernels),
        *_launches(kernels),
        *_coverage(kernels),
        *_exceeded(kernels, device),
    )


def _unusable(result: RooflineResult) -> Diagnostic:
    return Diagnostic(
        "roofline.unavailable",
        f"counters were recorded, but neither FLOPs nor bytes follow from them: {result.reason}",
        cause="the recording holds other counters than the roofline needs",
        remedy=result.how_to_collect,
    )


def _fallbacks(kernels: Sequence[KernelRoofline], device: DeviceModel) -> list[Diagnostic]:
    replaced = [kernel for kernel in kernels if kernel.models.fallback]
    best = device.counter_map.memory_bytes[0]
    legacy = [kernel for kernel in kernels if kernel.byte_source not in (None, best)]
    diagnostics = []
    if replaced:
        diagnostics.append(
            Diagnostic(
                "roofline.other_flop_model",
                f"{replaced[0].models.fallback}: low confidence",
                cause="the counters of the model asked for were not recorded",
                remedy="collect the recommended set with `rpl profile --roofline`",
                count=len(replaced),
            )
        )
    if legacy:
        sources = legacy[0].bytes.counters or (legacy[0].byte_source or "",)
        diagnostics.append(
            Diagnostic(
                "roofline.legacy_bytes",
                f"bytes come from {' and '.join(sources)}, the recording has nothing better",
                remedy="collect the recommended set with `rpl profile --roofline`",
                count=len(legacy),
            )
        )
    return diagnostics


def _untyped(kernels: Sequence[KernelRoofline]) -> list[Diagnostic]:
    untyped = [(kernel, rest) for kernel in kernels if (rest := untyped_flops(kernel.models, kernel.types))]
    if not untyped:
        return []
    kernel, rest = untyped[0]
    return [
        Diagnostic(
            "roofline.untyped_flops",
            f"{rest:.4g} FLOP per launch of {kernel.name} are of no data type that the device declares, so"
            " shares of the arithmetic ceilings are lower bounds",
            cause="the counter map counts them in flops, but no entry of CounterMap.work does",
            remedy="report it to the author of the device plugin",
            count=len(untyped),
        )
    ]


def _launches(kernels: Sequence[KernelRoofline]) -> list[Diagnostic]:
    known = [kernel for kernel in kernels if kernel.launches is not None and kernel.counter_launches]
    differing = [kernel for kernel in known if kernel.launches != kernel.counter_launches]
    if not differing:
        return []
    first = differing[0]
    launches = counted(first.launches, "launch", "launches", shown=f"{first.launches:g}")
    return [
        Diagnostic(
            "roofline.launches_differ",
            f"{first.name} has {launches} per timing run and {first.counter_launches} in the"
            " counter passes; figures per launch are compared, as estimates",
            cause="the counter passes were filtered, or the application launches differently from run to run",
            count=len(differing),
        )
    ]


def _coverage(kernels: Sequence[KernelRoofline]) -> list[Diagnostic]:
    timeless = [kernel for kernel in kernels if kernel.counter_launches and kernel.time_ns.value is None]
    uncounted = [kernel for kernel in kernels if not kernel.counter_launches]
    diagnostics = []
    if timeless:
        diagnostics.append(
            Diagnostic(
                "roofline.no_time",
                f"kernels with counters have no usable time, so no rates ({timeless[0].name}:"
                f" {timeless[0].time_ns.reason})",
                remedy="record a kernel trace without counters",
                count=len(timeless),
            )
        )
    if uncounted:
        diagnostics.append(
            Diagnostic(
                "roofline.no_counters",
                f"kernels of the timing run are in no counter pass, e.g. {uncounted[0].name}",
                Severity.INFO,
                cause="the counter passes were filtered, or the kernels only run sometimes",
                count=len(uncounted),
            )
        )
    return diagnostics


def _exceeded(kernels: Sequence[KernelRoofline], device: DeviceModel) -> list[Diagnostic]:
    memory = [kernel for kernel in kernels if "hbm" in kernel.exceeds_ceiling]
    arithmetic = [kernel for kernel in kernels if set(kernel.exceeds_ceiling) - {"hbm"}]
    diagnostics = []
    if memory:
        diagnostics.append(_above_bandwidth(memory, device))
    if arithmetic:
        first = arithmetic[0]
        kinds = ", ".join(name for name in first.exceeds_ceiling if name != "hbm")
        diagnostics.append(
            Diagnostic(
                "roofline.above_peak",
                f"{first.name} seems to exceed the theoretical peak of {kinds}: not a record, a wrong figure",
                cause="counter passes and timing run did different work, or the clock exceeds the data sheet",
                remedy="compare the launches of the passes, or give --clock-mhz",
                count=len(arithmetic),
            )
        )
    return diagnostics


def _above_bandwidth(kernels: Sequence[KernelRoofline], device: DeviceModel) -> Diagnostic:
    llc, first = device.llc_bytes, kernels[0]
    fits = llc is not None and all(k.bytes.value is not None and k.bytes.value <= llc for k in kernels)
    if fits:
        cause = "its data fit the Infinity Cache, whose hits count as traffic beyond L2"
    else:
        cause = "Infinity Cache hits count as traffic beyond L2, or the runs did different work"
    ceiling = first.spec.memory
    assert ceiling is not None  # nothing exceeds an unknown ceiling
    return Diagnostic(
        "roofline.above_bandwidth",
        f"{first.name} moves {first.achieved_gbps.value:.0f} GB/s, above the HBM ceiling of"
        f" {ceiling.peak_gbps:g} GB/s ({ceiling.source}): not HBM bandwidth",
        Severity.INFO if fits else Severity.WARNING,
        cause=cause,
        count=len(kernels),
    )
