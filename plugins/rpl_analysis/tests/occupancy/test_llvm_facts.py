"""Every occupancy that clang 22 reported for a generated kernel, against the ``llvm`` mode."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rpl_codeobject.occupancy import (
    LaunchShape,
    Occupancy,
    UsedRegisters,
    theoretical_occupancy,
)
from rpl_core.model.device import Architecture

FACTS = Path(__file__).resolve().parents[5] / "shared" / "data" / "occupancy" / "llvm_facts.json"


def _wave_size(fact: dict) -> int:
    if fact["arch"].startswith("gfx9") or "-mwavefrontsize64" in fact["extra_flags"]:
        return 64
    return 32


def _computed(fact: dict, architecture: Architecture) -> Occupancy:
    answer = theoretical_occupancy(
        architecture,
        UsedRegisters(
            arch_vgprs=fact["vgpr"],
            accum_vgprs=fact["agpr"] if fact["agpr"] >= 0 else None,
            sgprs=fact["sgpr"],
        ),
        LaunchShape(
            workgroup_size=fact["workgroup_size"],
            lds_bytes=fact["lds_bytes"],
            wave_size=_wave_size(fact),
            cumode="-mcumode" in fact["extra_flags"],
        ),
        mode="llvm",
    )
    assert isinstance(answer, Occupancy), (fact, answer)
    return answer


@pytest.mark.data
def test_llvm_mode_repeats_every_fact_of_the_compiler(architectures: dict[str, Architecture]) -> None:
    if not FACTS.exists():
        pytest.skip("the compiler's occupancy facts (shared/data/occupancy) are not here")
    facts = json.loads(FACTS.read_text())
    assert len(facts) > 500
    computed = [_computed(fact, architectures[fact["arch"]]).waves_per_simd for fact in facts]
    pairs = zip(facts, computed, strict=True)
    wrong = [fact for fact, waves in pairs if waves != fact["occupancy_waves_per_simd"]]
    assert wrong == []
