"""Hand-computed occupancies in ``hardware`` mode, their limiters, thresholds and refusals."""

from __future__ import annotations

import itertools

import attrs
import pytest

from rpl_amdgpu.models import cdna_architecture, rdna_architecture
from rpl_codeobject.occupancy import (
    AllocatedRegisters,
    LaunchShape,
    NoOccupancy,
    Occupancy,
    UsedRegisters,
    theoretical_occupancy,
)
from rpl_core.errors import BadDataError
from rpl_core.model.device import Architecture
from rpl_gfx942.products import FACTS as GFX942

GFX90A = cdna_architecture("gfx90a")
GFX950 = cdna_architecture("gfx950", lds_bytes=163840, lds_granule_bytes=1280, vgprs_may_be_halved=True)
GFX1100 = rdna_architecture("gfx1100", wave32_registers=1536, wave32_granule=24)


def used(vgprs: int | None = 4, agprs: int | None = 0, sgprs: int | None = 16) -> UsedRegisters:
    return UsedRegisters(arch_vgprs=vgprs, accum_vgprs=agprs, sgprs=sgprs)


def shape(workgroup: int = 256, lds: int | None = 0, wave: int = 64, *, cumode: bool = False) -> LaunchShape:
    return LaunchShape(workgroup_size=workgroup, lds_bytes=lds, wave_size=wave, cumode=cumode)


def figure(architecture: Architecture, registers, launch: LaunchShape, mode="hardware") -> Occupancy:
    answer = theoretical_occupancy(architecture, registers, launch, mode=mode)
    assert isinstance(answer, Occupancy), answer
    return answer


def reason(architecture: Architecture, registers, launch: LaunchShape) -> str:
    answer = theoretical_occupancy(architecture, registers, launch)
    assert isinstance(answer, NoOccupancy), answer
    return answer.reason


@pytest.mark.parametrize(
    ("limits", "registers", "launch", "waves", "limiter"),
    [
        # 10 922 B round up to 22 * 512 = 11 264 B; 65 536 / 11 264 = 5 groups of 4 waves on 4 SIMDs.
        (GFX942, used(), shape(lds=10922), 5, "lds"),
        # 512 B steps (docs/reference/devices.md): 12 800 = 25 * 512 leave 5 groups (4 by steps of 1024),
        (GFX942, used(), shape(lds=12800), 5, "lds"),
        # and one byte more makes 13 312 and leaves 4 (5 by steps of 256).
        (GFX942, used(), shape(lds=12801), 4, "lds"),
        # 1280 B steps on gfx950: 27 307 -> 28 160; 163 840 / 28 160 = 5 (unrounded: 5.9996).
        (GFX950, used(), shape(lds=27307), 5, "lds"),
        # 32 768 / 1280 = 25.6 -> 26 * 1280 = 33 280; 163 840 / 33 280 = 4 (unrounded: 5).
        (GFX950, used(), shape(lds=32768), 4, "lds"),
        # 9 waves: 3 groups in 32 slots, 27 waves, 7 on the fullest SIMD.
        (GFX942, used(), shape(576), 7, "workgroup"),
        (GFX942, used(), shape(768), 6, "workgroup"),
        # 512 / 8 = 64 registers leave 8 waves, 65 allocate 72: 512 / 72 = 7.
        (GFX942, used(64), shape(), 8, "wave_slots"),
        (GFX942, used(65), shape(), 7, "vgpr"),
        # AGPRs start at a multiple of 4: 44 + 24 = 68 -> 72.
        (GFX942, used(41, 24), shape(), 7, "vgpr"),
        (GFX942, used(41, 23), shape(), 7, "vgpr"),
        (GFX942, used(sgprs=96), shape(), 8, "wave_slots"),
        (GFX942, used(sgprs=97), shape(), 7, "sgpr"),
        # 112 scalar registers are the most that a wave can have (docs/reference/devices.md): 800 / 112 = 7.
        (GFX942, used(sgprs=112), shape(), 7, "sgpr"),
        # 65 work-items are two waves, the second with one lane: 16 groups fill 32 slots.
        (GFX942, used(), shape(65), 8, "wave_slots"),
        # 4 KiB for one wave: 16 groups, 16 waves on 4 SIMDs.
        (GFX942, used(), shape(64, 4096), 4, "lds"),
        # Wave32: 1536 / 120 = 12. Wave64 sees half the registers with half the granule: 768 / 108 = 7.
        (GFX1100, used(97, None, None), shape(wave=32), 12, "vgpr"),
        (GFX1100, used(97, None, None), shape(wave=64), 7, "vgpr"),
        # A WGP holds 131 072 B: 4 groups of 8 waves on 4 SIMDs; a CU alone 2 groups on 2 SIMDs.
        (GFX1100, used(4, None, None), shape(256, 32768, 32), 8, "lds"),
        (GFX1100, used(4, None, None), shape(256, 32768, 32, cumode=True), 8, "lds"),
        (GFX1100, used(4, None, None), shape(1024, 40960, 32), 16, "wave_slots"),
        # 20 waves: one group in the 32 slots of a CU, three in the 64 of a WGP (60 waves on 4 SIMDs).
        (GFX1100, used(4, None, None), shape(640, 0, 32, cumode=True), 10, "workgroup"),
        (GFX1100, used(4, None, None), shape(640, 0, 32), 15, "workgroup"),
    ],
)
def test_hand_computed_waves(limits, registers, launch, waves, limiter) -> None:
    answer = figure(limits, registers, launch)
    assert (answer.waves_per_simd, answer.limiter) == (waves, limiter)
    assert answer.fraction == waves / answer.max_waves_per_simd


def test_llvm_mode_neither_rounds_lds_nor_sgprs() -> None:
    assert figure(GFX942, used(), shape(lds=10922), mode="llvm").waves_per_simd == 6
    assert figure(GFX942, used(sgprs=97), shape(), mode="llvm").waves_per_simd == 8
    assert figure(GFX942, used(sgprs=101), shape(), mode="llvm").waves_per_simd == 7


def test_allocated_registers_count_as_their_sum() -> None:
    def recorded(arch: int, accum: int) -> AllocatedRegisters:
        return AllocatedRegisters(arch_vgprs=arch, accum_vgprs=accum, sgprs=16)

    # The measured MI250 case of ROCm's documentation: 124 + 4 registers, 50 % of the waves.
    assert figure(GFX90A, recorded(124, 4), shape()).fraction == 0.5
    # vecCopy on MI300X: 4 + 4 recorded, no AGPR used.
    assert figure(GFX942, recorded(4, 4), shape()).fraction == 1.0


def test_per_resource_limits_are_all_reported() -> None:
    answer = figure(GFX942, used(129), shape(576, 16384))
    assert attrs.asdict(answer.limits) == {"vgpr": 3, "sgpr": 8, "lds": 8, "workgroup": 7, "wave_slots": 8}


def test_whole_workgroups_are_counted_beside_the_waves() -> None:
    # 129 registers leave 3 waves per SIMD, 12 per CU: one workgroup of 8 waves, not one and a half.
    answer = figure(GFX942, used(129), shape(512))
    assert (answer.waves_per_simd, answer.workgroups_per_unit) == (3, 1)


def test_thresholds_name_every_resource_that_must_shrink() -> None:
    answer = figure(GFX942, used(129), shape(256, 20480))
    assert answer.waves_per_simd == 3
    assert [(t.resource, t.current, t.at_most) for t in answer.next_threshold] == [
        ("vgpr", 129, 128),
        ("lds", 20480, 16384),
    ]
    assert figure(GFX942, used(), shape()).next_threshold == ()


@pytest.mark.parametrize("mode", ["hardware", "llvm"])
def test_meeting_the_thresholds_gains_a_wave_and_missing_one_does_not(architecture, mode) -> None:
    wave = architecture.occupancy.register_files[-1].wave_size
    for vgprs, sgprs, lds, workgroup in itertools.product(
        (24, 65, 97, 129), (16, 97, 106), (0, 513, 9000, 21846, 65536), (64, 320, 576, 768)
    ):
        launch = shape(workgroup, lds, wave)
        before = theoretical_occupancy(architecture, used(vgprs, 0, sgprs), launch, mode=mode)
        if isinstance(before, NoOccupancy) or not before.next_threshold:
            continue
        least = {t.resource: t.at_most for t in before.next_threshold}
        assert (
            _waves_at(architecture, least, (vgprs, sgprs, lds, workgroup), wave, mode) > before.waves_per_simd
        )
        for resource in least:
            over = {**least, resource: least[resource] + 1}
            assert (
                _waves_at(architecture, over, (vgprs, sgprs, lds, workgroup), wave, mode)
                <= before.waves_per_simd
            )


def _waves_at(limits, at_most: dict, request: tuple[int, int, int, int], wave: int, mode) -> int:
    vgprs, sgprs, lds, workgroup = request
    return figure(
        limits,
        used(at_most.get("vgpr", vgprs), 0, at_most.get("sgpr", sgprs)),
        shape(at_most.get("workgroup", workgroup), at_most.get("lds", lds), wave),
        mode=mode,
    ).waves_per_simd


@pytest.mark.parametrize(
    ("limits", "registers", "launch", "words"),
    [
        (GFX942, used(None), shape(), "arch VGPR count is unknown"),
        (GFX942, used(agprs=None), shape(), "AGPR count is unknown"),
        (GFX942, used(sgprs=None), shape(), "SGPR count is unknown"),
        (GFX942, used(), shape(lds=None), "LDS size per workgroup is unknown"),
        (GFX942, used(), shape(1025), "1025 work-items exceeds"),
        (GFX942, used(), shape(lds=65537), "65537 B of LDS"),
        (GFX942, used(), shape(wave=32), "no waves of 32 lanes"),
        (GFX942, used(257), shape(), "257"),
        (GFX942, used(256, 257), shape(), "513 vector registers"),
        (GFX942, used(sgprs=113), shape(), "113 SGPRs"),
        (GFX1100, used(4, 4), shape(wave=32), "has none"),
        # 16 waves at 512 / 168 = 3 per SIMD: 12 on the CU, and all 16 must be resident for a barrier.
        (GFX942, used(168), shape(1024), "no room for one workgroup of 16 waves"),
    ],
)
def test_refusals_give_the_reason(limits, registers, launch, words) -> None:
    assert words in reason(limits, registers, launch)


def test_dispatch_records_that_cannot_be_allocations_are_refused() -> None:
    def record(arch: int, accum: int) -> AllocatedRegisters:
        return AllocatedRegisters(arch_vgprs=arch, accum_vgprs=accum, sgprs=32)

    assert "steps by 8" in reason(GFX942, record(20, 0), shape())
    assert "half" in reason(GFX950, record(128, 0), shape())
    assert figure(GFX950, record(124, 4), shape()).waves_per_simd == 4


def test_an_architecture_without_limits_has_no_occupancy() -> None:
    assert (
        reason(Architecture(name="gfx999"), used(), shape())
        == "no occupancy limits for architecture 'gfx999'"
    )


def test_a_wave_without_scalar_registers_takes_one_step_of_the_file() -> None:
    """As for vector registers: ``max(n, 1)``, here in steps of one, of which four leave four waves."""
    single = attrs.evolve(GFX90A.occupancy.scalar_file, registers=4, granule=1)
    limits = Architecture(name="gfx000", occupancy=attrs.evolve(GFX90A.occupancy, scalar_file=single))
    assert figure(limits, used(sgprs=0), shape()).waves_per_simd == 4
    assert figure(limits, used(sgprs=1), shape()).waves_per_simd == 4


def test_limits_may_name_more_registers_than_eight_bits_can() -> None:
    limits = attrs.evolve(
        GFX1100.occupancy,
        encodable_vgprs=1024,
        register_files=(attrs.evolve(GFX1100.occupancy.register_files[0], most_used=1024, granule=16),),
    )
    wide = Architecture(name="gfx1250", occupancy=limits)
    # 1536 registers in steps of 16: 512 leave 3 waves; 8 bits would name 256 at most.
    assert figure(wide, used(512, None, None), shape(wave=32)).waves_per_simd == 3
    assert "exceed the 256" in reason(GFX1100, used(512, None, None), shape(wave=32))


def test_negative_counts_and_empty_workgroups_are_bad_data() -> None:
    with pytest.raises(BadDataError, match="arch_vgprs is -1"):
        used(-1)
    with pytest.raises(BadDataError, match="workgroup_size is 0"):
        shape(0)
    with pytest.raises(BadDataError, match="lds_bytes is -4"):
        shape(lds=-4)


def test_where_single_waves_take_slots_too():
    """As on the SMs of examples/rpl-sm90: no smaller workgroup brings another wave then."""
    limits = attrs.evolve(GFX942.occupancy, slot_per_wave=True, workgroup_slots_per_cu=16)
    taking = attrs.evolve(GFX942, occupancy=limits)
    free = figure(GFX942, used(), shape(workgroup=64))
    assert (free.workgroups_per_unit, free.waves_per_simd) == (32, 8)
    found = figure(taking, used(), shape(workgroup=64))
    assert (found.workgroups_per_unit, found.waves_per_simd, found.limiter) == (16, 4, "workgroup")
    assert found.next_threshold == ()
