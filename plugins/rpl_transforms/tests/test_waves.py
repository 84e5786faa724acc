"""A second launch bound: what is offered, what the judge takes for it, and what the compiler makes of it."""

from __future__ import annotations

import attrs
import pytest

from rpl_gfx942.products import FACTS
from rpl_optimize.interfaces.transformation import KernelSource, LaunchBounds
from rpl_optimize.source_meaning.judge import MeaningJudge
from rpl_optimize.transform import apply_edits
from rpl_testkit.contracts import assert_transformation
from rpl_transforms.evidence import KernelFacts
from rpl_transforms.promises import WavesPerUnit

from .test_transforms import reading

# A hundred accumulators: with the 172 registers that clang 22 takes, two waves fit the 512 of a SIMD.
HUNGRY = b"""#include <hip/hip_runtime.h>
__global__ __launch_bounds__(256) void hungry(float* out, const float* in, int n) {
  float acc[100];
  for (int k = 0; k < 100; ++k) acc[k] = in[k * 256 + threadIdx.x];
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < 100; ++k) acc[k] = acc[k] * acc[(k + 1) % 100] + in[i * 100 + k + threadIdx.x];
  }
  for (int k = 0; k < 100; ++k) out[k * 256 + threadIdx.x] = acc[k];
}
int main() {
  float *in = nullptr, *out = nullptr;
  hungry<<<8, 256>>>(out, in, 4);
  return hipDeviceSynchronize();
}
"""
BOUND = b"__launch_bounds__(256) "


def read(text: bytes = HUNGRY) -> KernelSource:
    return KernelSource("a.hip", text, "hungry", architecture=FACTS, reading=reading(text, "-O3"))


@pytest.fixture(autouse=True)
def _compiler(rpl_require) -> None:
    rpl_require("clang++-22")
    rpl_require("ld.lld-22")


def test_it_keeps_the_contract():
    assert_transformation(WavesPerUnit(), read())


@pytest.mark.parametrize("bound", [BOUND, b""], ids=["own bound", "by its launches"])
def test_the_next_numbers_of_waves_are_ways_to_change_the_same(bound):
    text = HUNGRY.replace(BOUND, bound)
    # Without a bound the compiler has to fit sixteen waves of a block on four SIMDs.
    fitting = 2 if bound else 4
    candidates = WavesPerUnit().propose(read(text))
    assert [one.id for one in candidates] == [f"hungry-{fitting + more}" for more in (1, 2, 3)]
    assert {one.alternatives for one in candidates} == {"waves of hungry"}
    assert {one.workgroup_limit for one in candidates} == {None if bound else 256}
    after = apply_edits(text, candidates[0].edits)
    bounded = b"__launch_bounds__(256, %d) " % (fitting + 1)
    new = bounded + b"void hungry" if bound else b"void " + bounded + b"hungry"
    assert after == text.replace(bound + b"void hungry", new)
    meaning = MeaningJudge(reading(text, "-O3").front_end, text).judge(after, candidates[0].declares)
    assert meaning.passed, meaning.verdicts


def test_where_all_fit_or_nobody_knows():
    light = HUNGRY.replace(b"100", b"4")
    assert WavesPerUnit().propose(read(light)) == ()
    assert WavesPerUnit().propose(KernelSource("a.hip", HUNGRY, "hungry")) == ()


@pytest.mark.parametrize(
    "head",
    [
        b"__launch_bounds__(256, 2) ",
        b"__launch_bounds__(THREADS) ",
        b"__attribute__((amdgpu_waves_per_eu(2))) ",
        b"__attribute__((amdgpu_flat_work_group_size(1, 256))) ",
        b"__launch_bounds__(2048) ",
    ],
)
def test_what_somebody_bound_in_another_way_stays(head):
    text = HUNGRY.replace(BOUND, head).replace(b"__global__", b"#define THREADS 256\n__global__", 1)
    assert WavesPerUnit().propose(read(text)) == ()


def test_a_kernel_without_a_bound_whose_launches_are_unknown_is_left(rpl_require):
    text = HUNGRY.replace(BOUND, b"").replace(b"int main()", b"int helper()")
    assert WavesPerUnit().propose(read(text)) == ()


@pytest.mark.parametrize(
    ("written", "declared"),
    [
        (b"(256, 3) ", LaunchBounds(256, 4)),
        (b"(256) ", LaunchBounds(256, 4)),
        (b"(128, 4) ", LaunchBounds(256, 4)),
        (b"(256, 4) ", LaunchBounds(256)),
    ],
)
def test_another_bound_than_the_declared_one_is_refused(written, declared):
    after = HUNGRY.replace(b"(256) ", written)
    if after == HUNGRY:
        after = HUNGRY.replace(b"(256) ", b"( 256 ) ")
    assert not MeaningJudge(reading(HUNGRY, "-O3").front_end, HUNGRY).judge(after, (declared,)).passed


def test_only_numbers_by_which_more_waves_fit_pass_and_spills_are_for_the_measurement():
    transformation, source = WavesPerUnit(), read()
    offered = transformation.propose(source)
    for candidate, waves in ((offered[0], 3), (offered[2], 5)):
        verdicts = {v.guard: v for v in transformation.screen(source, candidate, {}).verdicts}
        assert f": 2 -> {waves} waves per SIMD" in verdicts["more-waves"].reason
        assert all(verdict.passed for verdict in verdicts.values()), verdicts
        assert verdicts["binary-spills"].asks
    (edit,) = offered[0].edits
    fits_already = attrs.evolve(
        offered[0], edits=(attrs.evolve(edit, replacement=edit.replacement.replace(b", 3", b", 2")),)
    )
    verdicts = {v.guard: v for v in transformation.screen(source, fits_already, {}).verdicts}
    assert not verdicts["more-waves"].passed


@pytest.mark.parametrize(
    ("limiter", "bottleneck", "most"),
    [
        ("vgpr", "latency_bound", 0.5),
        ("vgpr", "under_occupied", 0.5),
        ("vgpr", "compute_throughput_limited", 0.0),
        ("lds", "latency_bound", 0.0),
        ("wave_slots", "latency_bound", 0.0),
        (None, "latency_bound", None),
        ("vgpr", None, None),
    ],
)
def test_it_helps_where_registers_keep_waves_out_that_would_hide_something(limiter, bottleneck, most):
    evidence = WavesPerUnit().evidence_of(KernelFacts(0.5, bottleneck, occupancy_limiter=limiter))
    assert evidence.expected_gain == (None if most is None else (0.0, most))
