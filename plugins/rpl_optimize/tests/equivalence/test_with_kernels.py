"""The whole stage on HIP programs that run on the CPU: built controls, real outputs, real verdicts."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest

from rpl_core.plugins.host import Contribution
from rpl_optimize.build.builders import BuiltProgram, choose_builder
from rpl_optimize.build.systems import CommandBuilds
from rpl_optimize.equivalence.stage import EquivalenceStage, EquivalenceSubject
from rpl_optimize.hookspecs import EQUIVALENCE_CHECKS, TRANSFORMATIONS
from rpl_optimize.interfaces.builder import BuildRequest
from rpl_optimize.interfaces.equivalence import EquivalenceOptions
from rpl_optimize.interfaces.transformation import KernelSource
from rpl_optimize.transform import installed

pytestmark = pytest.mark.clang

_SOURCE = """#include <hip/hip_runtime.h>
#include <cstdio>
__global__ void sums(float* out, const float* in) {
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) sum += in[i * 64 + threadIdx.x];
  out[threadIdx.x] = sum;
}
int main() {
  float *in, *out;
  (void)hipMallocManaged(&in, 1024 * sizeof(float));
  (void)hipMallocManaged(&out, 64 * sizeof(float));
  for (int i = 0; i < 1024; ++i) in[i] = 0.1f * i;
  sums<<<1, 64>>>(out, in);
  if (hipDeviceSynchronize() != hipSuccess) return 1;
  FILE* file = fopen("out.bin", "wb");
  fwrite(out, sizeof(float), 64, file);
  fclose(file);
  puts("done");
  return 0;
}
"""
_UNROLLED = _SOURCE.replace("  for (int i", "#pragma unroll 4\n  for (int i")
_REORDERED = _SOURCE.replace("int i = 0; i < 16; ++i", "int i = 15; i >= 0; --i")
_WRONG = _SOURCE.replace("i < 16", "i < 15")


@pytest.fixture
def verdicts(rpl_closed_loop_bench, rpl_host, monkeypatch):
    bench = rpl_closed_loop_bench
    source = bench.folder / "sums.hip"
    source.write_text(_SOURCE)
    monkeypatch.chdir(bench.folder)
    bench.build(source)
    command = ("./sums", "7")
    request = BuildRequest(command, source, bench.folder, build_command="hipcc -O2 {source} -o {output}")
    builder = choose_builder(request, [Contribution("optimize", CommandBuilds())], lambda line: None)
    transformations = installed(rpl_host("transforms").catalog.of(TRANSFORMATIONS))
    checks = rpl_host("optimize").catalog.of(EQUIVALENCE_CHECKS)

    @cache
    def built(text: str) -> BuiltProgram:
        folder = Path(tempfile.mkdtemp(dir=bench.folder.parent))
        made = builder.build(text.encode(), folder)
        assert isinstance(made, BuiltProgram), made
        return made

    def run(candidate: str, **options):
        stage = EquivalenceStage(checks, transformations, builder, EquivalenceOptions(**options))
        baseline = KernelSource(str(source), _SOURCE.encode(), "sums")
        subject = EquivalenceSubject(baseline, built(_SOURCE), built(candidate), command)
        parts = stage.run(subject, Path(tempfile.mkdtemp(dir=bench.folder.parent)))
        return {part.check: part for part in parts if part.verdict != "not_run"}

    return run


def shown(part) -> dict[str, str]:
    return {control.control: control.verdict for control in part.controls}


def test_an_unrolled_kernel_is_equal_and_the_checks_see(verdicts) -> None:
    script = Path("check.sh")
    script.write_text('#!/bin/sh\n./sums 7 && mv out.bin right.bin && "$1" 7 && cmp out.bin right.bin\n')
    script.chmod(0o755)
    found = verdicts(_UNROLLED, outputs=("out.bin",), validate=("./check.sh {program}",))
    assert found.keys() == {"output-files", "validation-command"}
    for part in found.values():
        assert part.verdict == "equal", part
        assert shown(part) == {"empty": "different", "broken": "different"}
    assert not Path("out.bin").exists()


def test_another_order_of_additions_is_equal_within_a_tolerance_only(verdicts) -> None:
    part = verdicts(_REORDERED, outputs=("out.bin",))["output-files"]
    assert part.verdict == "different"
    part = verdicts(_REORDERED, outputs=("out.bin:f32",), relative=1e-5)["output-files"]
    assert part.verdict == "equal", part
    assert "64 numbers within" in part.evidence


def test_a_wrong_kernel_is_equal_to_a_blind_check_only(verdicts) -> None:
    part = verdicts(_WRONG, outputs=("out.bin:f32",), relative=1e-3)["output-files"]
    assert part.verdict == "different"
    assert "64 of 64 numbers" in part.evidence
    part = verdicts(_WRONG, outputs=("-",))["output-files"]
    assert part.verdict == "blind", part
    assert shown(part) == {"empty": "equal"}
