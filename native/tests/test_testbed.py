"""The programs of examples/testbed run to right results on the emulated GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpl_testkit.requirements import require

pytestmark = [pytest.mark.clang, pytest.mark.timeout(900)]

TESTBED = Path(__file__).parents[2] / "examples" / "testbed"
PROGRAMS = sorted(path.stem for path in TESTBED.glob("*.hip"))


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_finds_its_results_right(name, over_softkfd, emulator, hip_runtime, hip_program):
    del emulator
    ran = over_softkfd(hip_runtime, hip_program(name, hip_runtime, TESTBED), executor="emu")
    lines = ran.stdout.splitlines()
    assert ran.status == 0, ran.stdout + ran.stderr
    assert lines
    assert all(" wrong 0 of " in line for line in lines)


@pytest.mark.long
def test_a_program_that_is_wrong_says_so(over_softkfd, emulator, hip_runtime, hip_program, tmp_path):
    """Without a barrier the sums of the tree come too late."""
    del emulator
    require("ld.lld-22")
    source = (TESTBED / "reduction.hip").read_text()
    wrong = source.replace("part[threadIdx.x] = own;\n  __syncthreads();", "part[threadIdx.x] = own;")
    assert wrong != source
    (tmp_path / "without_barrier.hip").write_text(wrong)
    (tmp_path / "check.h").write_text((TESTBED / "check.h").read_text())
    ran = over_softkfd(hip_runtime, hip_program("without_barrier", hip_runtime, tmp_path), executor="emu")
    assert (ran.status, ran.stdout) == (1, "reduction wrong 1 of 1\n")
