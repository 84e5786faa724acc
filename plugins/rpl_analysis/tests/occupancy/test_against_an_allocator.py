"""Occupancy of every architecture against an allocator that puts waves and workgroups on SIMDs one by one.

The table is typed from LLVM's ``AMDGPUBaseInfo`` (``getTotalNumVGPRs``, ``getVGPRAllocGranule``,
``getSGPRAllocGranule``, ``getLDSAllocGranule``, ``getEUsPerCU``, ``getMaxWavesPerEU``,
``getMaxWorkGroupsPerCU``; docs/reference/devices.md, 4.1); nothing is read from the plugins but names.
"""

from __future__ import annotations

import random

import attrs
import pytest

from rpl_codeobject.occupancy import (
    AllocatedRegisters,
    LaunchShape,
    NoOccupancy,
    Occupancy,
    UsedRegisters,
    theoretical_occupancy,
)


@attrs.frozen
class Target:
    """Per wave size the vector registers of a SIMD and lane with their granule; LDS of a CU with its own."""

    vector: dict[int, tuple[int, int]]
    simds: int
    waves: int
    lds_bytes: int
    lds_granule: int
    #: Registers of a SIMD and their granule; none where every wave has a full set.
    scalar: tuple[int, int] | None = None
    accumulators: bool = False
    processor_cus: int = 1


def _cdna(lds_bytes: int = 65536, lds_granule: int = 512) -> Target:
    return Target({64: (512, 8)}, 4, 8, lds_bytes, lds_granule, scalar=(800, 16), accumulators=True)


def _rdna(registers: int, granule: int) -> Target:
    files = {32: (registers, granule), 64: (registers // 2, granule // 2)}
    return Target(files, 2, 16, 65536, 1024, processor_cus=2)


TARGETS = {
    "gfx90a": _cdna(),
    "gfx942": _cdna(),
    "gfx950": _cdna(163840, 1280),
    "gfx1030": _rdna(1024, 16),
    "gfx1031": _rdna(1024, 16),
    "gfx1032": _rdna(1024, 16),
    "gfx1100": _rdna(1536, 24),
    "gfx1151": _rdna(1536, 24),
    "gfx1201": _rdna(1536, 24),
}
_SLOTS_PER_CU = 16  # of workgroups with barriers


@attrs.frozen
class Asked:
    """A launch: registers per wave, bytes and work-items per workgroup."""

    vector: int
    scalar: int
    lds_bytes: int
    workgroup: int
    wave: int
    cumode: bool = False

    @property
    def waves(self) -> int:
        """Of one workgroup, counted out."""
        waves, left = 0, self.workgroup
        while left > 0:
            waves, left = waves + 1, left - self.wave
        return waves


def _blocks(amount: int, granule: int) -> int:
    """What is taken of a file for ``amount``, in whole granules."""
    taken = 0
    while taken < amount:
        taken += granule
    return taken


def _fit(amount: int, granule: int, of: int, at_least_one: int = 1) -> int:
    """How often ``amount`` is taken out of ``of`` until it doesn't fit."""
    each, count = _blocks(max(amount, at_least_one), granule), 0
    while of >= each:
        of, count = of - each, count + 1
    return count


def _on_simds(workgroups: int, waves: int, simds: int) -> list[int]:
    """Waves dealt out to the emptiest SIMD, one workgroup after the other."""
    load = [0] * simds
    for _ in range(workgroups * waves):
        load[load.index(min(load))] += 1
    return load


def _expected(target: Target, asked: Asked) -> dict[str, int]:
    """Waves per SIMD that each resource alone would leave, and whole workgroups on one unit."""
    cus = 1 if asked.cumode else target.processor_cus
    simds = target.simds * cus
    registers, granule = target.vector[asked.wave]
    vector = min(target.waves, max(1, _fit(asked.vector, granule, registers)))
    scalar = target.waves
    if target.scalar is not None:
        scalar = min(target.waves, max(1, _fit(asked.scalar, target.scalar[1], target.scalar[0])))

    in_slots = 0
    while (in_slots + 1) * asked.waves <= target.waves * simds and (
        asked.waves == 1 or in_slots < _SLOTS_PER_CU * cus
    ):
        in_slots += 1
    in_lds = _fit(asked.lds_bytes, target.lds_granule, target.lds_bytes * cus) if asked.lds_bytes else None

    def fullest(workgroups: int) -> int:
        return min(target.waves, max(_on_simds(max(workgroups, 1), asked.waves, simds)))

    whole = 0
    limits = (min(vector, scalar) * simds, in_slots, in_lds)
    while (whole + 1) * asked.waves <= limits[0] and whole < limits[1] and (in_lds is None or whole < in_lds):
        whole += 1
    return {
        "vgpr": vector,
        "sgpr": scalar,
        "lds": target.waves if in_lds is None else fullest(in_lds),
        "workgroup": fullest(in_slots),
        "wave_slots": target.waves,
        "whole": whole,
    }


def _random(target: Target, rng: random.Random) -> Asked:
    """Around every multiple of a granule and every share of a file."""
    wave = rng.choice(list(target.vector))
    registers, _granule = target.vector[wave]
    most = 512 if target.accumulators else 256
    vector = rng.choice((rng.randint(1, most), registers // rng.randint(2, 16) + rng.choice((0, 1, -1))))
    lds = rng.choice(
        (
            0,
            rng.randint(1, target.lds_bytes),
            target.lds_bytes // rng.randint(1, 12) + rng.choice((0, 1, -1)),
            target.lds_granule * rng.randint(1, 20) + rng.choice((0, 1)),
        )
    )
    workgroup = rng.choice((wave, wave * rng.randint(1, 1024 // wave), rng.randint(1, 1024)))
    scalar = rng.choice((16, 96, 97, 100, 112, rng.randint(1, 112)))
    return Asked(
        max(1, min(most, vector)), scalar, min(lds, target.lds_bytes), workgroup, wave, rng.random() < 0.3
    )


def test_the_table_has_all_targets(architectures) -> None:
    assert set(architectures) == set(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_waves_as_an_allocator_deals_them_out(architectures, name: str) -> None:
    target, rng = TARGETS[name], random.Random(name)
    refused = 0
    for number in range(250):
        asked = _random(target, rng)
        expected = _expected(target, asked)
        found = theoretical_occupancy(architectures[name], _registers(target, asked, number), _shape(asked))
        if expected["whole"] == 0:
            refused += 1
            assert isinstance(found, NoOccupancy), asked
            continue
        assert isinstance(found, Occupancy), (asked, found)
        whole = expected.pop("whole")
        assert attrs.asdict(found.limits) == expected, asked
        assert found.workgroups_per_unit == whole, asked
        assert found.waves_per_simd == min(expected.values()), asked
        assert found.fraction == found.waves_per_simd / target.waves
        assert found.max_waves_per_simd == target.waves
        least = [resource for resource, waves in expected.items() if waves == found.waves_per_simd]
        full = found.waves_per_simd == target.waves
        assert found.limiter == ("wave_slots" if full else least[0]), asked
        _check_thresholds(target, asked, found)
    assert refused < 125


def _registers(target: Target, asked: Asked, number: int) -> UsedRegisters | AllocatedRegisters:
    """As code or as a record counts them, where there are accumulators in two parts."""
    if not target.accumulators:
        return UsedRegisters(arch_vgprs=asked.vector, accum_vgprs=None, sgprs=asked.scalar)
    if number % 2:
        whole = _blocks(asked.vector, 8)
        accumulators = max(4, whole - 256)
        return AllocatedRegisters(
            arch_vgprs=whole - accumulators, accum_vgprs=accumulators, sgprs=asked.scalar
        )
    # Accumulators begin at a multiple of four.
    arch = min(256, asked.vector // 8 * 4 or asked.vector)
    return UsedRegisters(arch_vgprs=arch, accum_vgprs=asked.vector - arch, sgprs=asked.scalar)


def _shape(asked: Asked) -> LaunchShape:
    return LaunchShape(
        workgroup_size=asked.workgroup, lds_bytes=asked.lds_bytes, wave_size=asked.wave, cumode=asked.cumode
    )


def _check_thresholds(target: Target, asked: Asked, found: Occupancy) -> None:
    """What is said to be enough for one more wave is, all of it together, and one more of any is too much."""
    most = {part.resource: part.at_most for part in found.next_threshold}
    if found.waves_per_simd == target.waves:
        assert not most
        return
    names = {"vgpr": "vector", "sgpr": "scalar", "lds": "lds_bytes", "workgroup": "workgroup"}
    if any(amount < 1 and resource != "lds" for resource, amount in most.items()) or not most:
        return
    current = {part.resource: part.current for part in found.next_threshold}
    for resource, amount in current.items():
        assert amount == getattr(asked, names[resource]) or resource == "vgpr", asked

    def waves(amounts: dict[str, int]) -> int:
        changed = attrs.evolve(asked, **{names[resource]: amount for resource, amount in amounts.items()})
        limits = _expected(target, changed)
        return min(waves for resource, waves in limits.items() if resource != "whole")

    # A whole workgroup at less LDS may still leave no more waves: then no smaller one was named either.
    if waves(most) > found.waves_per_simd:
        for resource in most:
            assert waves({**most, resource: most[resource] + 1}) <= found.waves_per_simd, (asked, resource)
    else:
        assert "workgroup" not in most, asked


@pytest.mark.parametrize("name", TARGETS)
def test_more_than_a_wave_or_a_workgroup_can_have_is_refused(architectures, name: str) -> None:
    """256 architectural registers, as many accumulators, 112 scalar ones, 1024 work-items, LDS of a CU."""
    target, facts = TARGETS[name], architectures[name]
    for wave in target.vector:
        most = Asked(256, 112, 0, 64, wave)
        granule = target.vector[wave][1]
        largest = attrs.evolve(most, lds_bytes=target.lds_bytes)
        asked = [
            (most, True),
            (largest, True),
            (attrs.evolve(largest, lds_bytes=target.lds_bytes + 1), False),
        ]
        asked += [(attrs.evolve(most, vector=16, workgroup=n), n <= 1024) for n in (1024, 1025)]
        asked += [(attrs.evolve(most, vector=_blocks(256, granule) + 1), False)]
        if target.scalar is not None:
            asked += [(attrs.evolve(most, scalar=113), False)]
        for one, possible in asked:
            accumulators = 256 if target.accumulators and one.vector == 256 else 0
            registers = UsedRegisters(arch_vgprs=one.vector, accum_vgprs=accumulators, sgprs=one.scalar)
            found = theoretical_occupancy(facts, registers, _shape(one))
            assert isinstance(found, Occupancy) == possible, one
    assert theoretical_occupancy(facts, _registers(target, most, 0), _shape(attrs.evolve(most, wave=16))) == (
        NoOccupancy(f"{name} has no waves of 16 lanes")
    )


@pytest.mark.parametrize("name", TARGETS)
def test_packed_multiply_adds_do_two_operations_of_these_types(architectures, name: str) -> None:
    """v_pk_fma_f16 of all, v_pk_fma_f32 of CDNA since gfx90a; none of FP64 (LLVM, VOP3PInstructions)."""
    packed = {part.data_type: part.operations_per_counted for part in architectures[name].packed}
    assert packed == dict.fromkeys(("F16", "F32") if TARGETS[name].accumulators else ("F16",), 2)
