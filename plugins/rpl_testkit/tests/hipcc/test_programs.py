"""Programs that the stand-in builds compute for real, and carry real gfx942 code."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from rpl_codeobject.reading import read_code_objects
from rpl_testkit.rocprofv3_standin.scenario import embedded_source

pytestmark = pytest.mark.clang

HERE = Path(__file__).parent
SMOOTH = HERE.parents[3] / "examples" / "optimize" / "smooth.hip"


def output(program: Path, *arguments: str) -> str:
    done = subprocess.run(
        [program, *arguments], cwd=program.parent, capture_output=True, text=True, check=True
    )
    return done.stdout


def kernels(program: Path) -> list[str]:
    return [kernel.name for code in read_code_objects(program) for kernel in code.kernels]


@pytest.fixture
def language(rpl_closed_loop_bench):
    for name in ("language.hip", "amount.h"):
        shutil.copy(HERE / name, rpl_closed_loop_bench.folder)
    return rpl_closed_loop_bench.folder / "language.hip"


def test_the_language_of_kernels_computes_on_the_host(rpl_closed_loop_bench, language) -> None:
    program = rpl_closed_loop_bench.build(language, "-DAMOUNT=7", "-Wall", "-Werror")
    # 896 of 1024 values are sqrt(5 * 2 * (1+2+3+4)) + 2 = 12, the others 0 + 2.
    lines = output(program).splitlines()
    assert lines == [
        "total 11008.0 of 4 blocks <<<",
        "odd aaaaaaaaaaaaaaaa corner 19",
        "hipErrorInvalidConfiguration",
    ]
    assert {code.target for code in read_code_objects(program)} == {"amdgcn-amd-amdhsa--gfx942"}
    assert sorted(kernels(program)) == ["_Z5totalPfPKf", "_Z5weighIfLi8EEvPT_PKS0_i", "_Z6placesPyPi6Amount"]
    source = embedded_source((str(program), "100"))
    assert source is not None
    assert source.startswith(language.read_bytes())


@pytest.fixture
def smooth(rpl_closed_loop_bench):
    return Path(shutil.copy(SMOOTH, rpl_closed_loop_bench.folder))


def test_the_example_computes_and_a_wrong_kernel_computes_something_else(
    rpl_closed_loop_bench, smooth
) -> None:
    program = rpl_closed_loop_bench.build(smooth, "-Wall", "-Wextra", "-Werror")
    right = output(program, "300", "2", "right.bin")
    # Without the last weight; the files tell as well.
    smooth.write_text(smooth.read_text().replace("k < taps; ++k) {", "k < taps - 1; ++k) {"))
    wrong = output(rpl_closed_loop_bench.build(smooth), "300", "2", "wrong.bin")
    assert right.startswith("checksum ")
    assert right != wrong
    folder = rpl_closed_loop_bench.folder
    assert (folder / "right.bin").stat().st_size == (folder / "wrong.bin").stat().st_size == 1200
    assert (folder / "right.bin").read_bytes() != (folder / "wrong.bin").read_bytes()


def test_the_example_agrees_with_plain_arithmetic(rpl_closed_loop_bench, smooth) -> None:
    import numpy as np

    program = rpl_closed_loop_bench.build(smooth)
    output(program, "500", "1", "out.bin")
    signal = np.float32([(i * 37) % 101 for i in range(564)]) / np.float32(101)
    weights = np.float32([1.0 / (64 + k % 3) for k in range(64)])
    expected = np.convolve(signal, weights[::-1], mode="valid")[:500] * np.float32(0.99)
    found = np.fromfile(rpl_closed_loop_bench.folder / "out.bin", dtype=np.float32)
    assert np.allclose(found, expected, rtol=1e-5)


def test_the_same_command_gives_the_same_bytes(rpl_closed_loop_bench, smooth) -> None:
    first = rpl_closed_loop_bench.build(smooth).read_bytes()
    program = rpl_closed_loop_bench.build(smooth)
    assert program.read_bytes() == first
    assert rpl_closed_loop_bench.hipcc("-O3", "-g", smooth, "-o", "other").returncode == 0
    ours, other = (read_code_objects(p)[0].elf for p in (program, program.with_name("other")))
    # As with hipcc, code holds an id of path and options: other bytes, the same kernels.
    assert ours != other
    assert kernels(program) == kernels(program.with_name("other"))


BARRIERS = """#include <hip/hip_runtime.h>
__global__ void k() {{
  if ({condition}) {{ __syncthreads(); }} else {{ {otherwise}; }}
}}
int main() {{ k<<<1, 64>>>(); }}
"""


@pytest.mark.parametrize(
    ("otherwise", "code", "message"),
    [("return", 0, ""), ("__shfl(1, 0)", -signal.SIGABRT, "work-items wait at different barriers")],
)
def test_barriers_wait_for_all_that_have_not_finished(
    rpl_closed_loop_bench, otherwise: str, code: int, message: str
) -> None:
    source = rpl_closed_loop_bench.folder / "barriers.hip"
    source.write_text(BARRIERS.format(condition="threadIdx.x < 32", otherwise=otherwise))
    done = subprocess.run([rpl_closed_loop_bench.build(source)], check=False, capture_output=True, text=True)
    assert done.returncode == code
    assert message in done.stderr
