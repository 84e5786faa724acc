"""What the judge of sources says of every unrolling of the corpus, which are all right.

    python benchmarks/judged_unrollings.py [--jobs 2] [--every 1]

Each kernel of ``plugins/rpl_transforms/tests/unroll_corpus.py`` is a source of its own, so that the compiler
reads a few lines for each edit instead of all of them; the judge is the one of ``rpl optimize``, with
clang 22 and without a sandbox. That the unrollings are right is shown by running them
(``plugins/rpl_transforms/tests/test_unroll_corpus.py``). Printed is each one that is refused, with the
reason; ends with 1 where one is.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import rpl_testkit
from rpl_optimize.interfaces.transformation import KernelSource
from rpl_optimize.source_meaning.front_end import FrontEnd
from rpl_optimize.source_meaning.judge import MeaningJudge
from rpl_optimize.transform import apply_edits
from rpl_transforms.unroll import Unroll

sys.path.insert(0, str(Path(__file__).parent.parent / "plugins" / "rpl_transforms"))
from tests.unroll_corpus import PRELUDE, kernels

_HEADERS = Path(rpl_testkit.__file__).parent / "hipcc_standin" / "include"
#: The corpus is plain C++, whose classes do not say that the device may use them.
_HEAD = "#include <hip/hip_runtime.h>\n#pragma clang force_cuda_host_device begin\n"
_COMPILER = ("clang++-22", "-x", "hip", "--offload-arch=gfx942", "-nogpuinc", "-nogpulib", "-O3")


def judged(kernel: str) -> tuple[int, list[str]]:
    """How many unrollings of this kernel are offered, and those that the judge refuses."""
    text = f"{_HEAD}{PRELUDE}{kernels()[kernel]}\n".encode()
    offered = [c for c in Unroll().propose(KernelSource("corpus.hip", text)) if c.allowed]
    refused = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "corpus.hip")
        source.write_bytes(text)
        judge = MeaningJudge(FrontEnd((*_COMPILER, "-I", str(_HEADERS)), source, source, source.parent), text)
        for candidate in offered:
            verdicts = judge.judge(apply_edits(text, candidate.edits), candidate.declares).verdicts
            said = [f"{one.guard}: {one.reason}" for one in verdicts if not one.passed]
            if said:
                refused.append(f"{kernel} {candidate.id}: {'; '.join(said)}")
    return len(offered), refused


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th kernel")
    given = parser.parse_args()
    os.environ["RPL_SANDBOX"] = "off"
    offered, refused = 0, 0
    with ProcessPoolExecutor(given.jobs) as pool:
        for count, reasons in pool.map(judged, list(kernels())[:: given.every]):
            offered += count
            refused += len(reasons)
            for reason in reasons:
                print(reason, flush=True)
    print(f"{offered} unrollings judged, {offered - refused} accepted, {refused} refused")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
