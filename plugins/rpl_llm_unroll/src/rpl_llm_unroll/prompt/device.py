"""Sections on the device and on the kernel's resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.text.figures import number, percent
from rpl_llm_unroll.prompt.figures import NOT_COLLECTED, bullets, known, missing
from rpl_llm_unroll.prompt.model import Section
from rpl_llm_unroll.prompt.quoting import sentence

if TYPE_CHECKING:
    from rpl_llm_unroll.prompt.facts import RunFacts


def device_section(facts: RunFacts) -> Section:
    """Name, architecture, waves, units and every ceiling with its origin and source."""
    if facts.profile is None:
        return Section("Device", missing("no run was given"))
    gpu = facts.profile.gpu
    if gpu.architecture is None and gpu.product is None:
        return Section("Device", missing(gpu.reason))
    rows = [
        ("product", known(gpu.product)),
        ("architecture", known(gpu.architecture)),
        ("wave size", known(gpu.wave_size, "lanes")),
        ("compute units", known(gpu.compute_units)),
        ("engine clock", known(gpu.clock_mhz, "MHz")),
    ]
    return Section("Device", bullets([*rows, *_ceilings(facts)]))


def _ceilings(facts: RunFacts) -> list[tuple[str, str]]:
    ceilings = facts.roofline.ceilings if facts.roofline is not None else None
    if ceilings is None or not (ceilings.compute or ceilings.memory):
        return [("ceilings", NOT_COLLECTED)]
    memory = [
        (f"ceiling of {c.level} ({c.origin})", f"{number(c.peak_gbps)} GB/s, source: {sentence(c.source)}")
        for c in ceilings.memory
    ]
    compute = [
        (
            f"ceiling of {c.data_type} on {c.pipe} ({c.origin})",
            f"{number(c.peak_gflops)} Gop/s, source: {sentence(c.source)}",
        )
        for c in ceilings.compute
    ]
    return memory + compute


def resources_section(facts: RunFacts) -> Section:
    """Registers, LDS, scratch, launch shape, and the occupancy that they allow, with its limiter."""
    timing = facts.timing
    if timing is None:
        return Section("Launch and resources", missing("the run has no figures of this kernel"))
    shape, used, occupancy = timing.kernel, timing.resources, timing.occupancy
    rows = [
        ("grid (workgroups)", _axes(shape.grid)),
        ("block (work-items)", _axes(shape.block)),
        ("VGPRs per work-item, accumulation registers included", known(used.vgpr_per_thread)),
        ("of these architectural VGPRs", known(used.arch_vgpr)),
        ("of these accumulation VGPRs (AGPRs)", known(used.accum_vgpr)),
        ("SGPRs per wave", known(used.sgpr_per_wave)),
        ("LDS per workgroup", known(used.lds_bytes, "bytes")),
        ("scratch per work-item", known(used.scratch_bytes, "bytes")),
    ]
    if occupancy.theoretical is None:
        rows.append(("occupancy", missing(occupancy.reason)))
        return Section("Launch and resources", bullets(rows))
    waves = f"{known(occupancy.waves_per_simd)} of {known(occupancy.max_waves_per_simd)} waves per SIMD"
    rows.append(("occupancy (modelled upper bound)", f"{percent(occupancy.theoretical)}, {waves}"))
    rows.append(("limited by", known(occupancy.limiter)))
    if occupancy.next_threshold is not None:
        rows.append(("next step up", sentence(occupancy.next_threshold)))
    return Section("Launch and resources", bullets(rows))


def _axes(axes: tuple[int, ...] | None) -> str:
    return " x ".join(str(axis) for axis in axes) if axes else NOT_COLLECTED
