"""A stand-in for hipcc: real host programs with real gfx942 code, where neither ROCm nor a GPU is at hand.

``install_hipcc(directory)`` puts a program ``hipcc`` there. It needs clang++-22 with ld.lld-22, no ROCm. Of
each HIP source it makes what hipcc makes: the device code (clang's, as a bundle), then clang's host code with
that bundle in ``.hip_fatbin``. The bundle also carries the same device code compiled for the CPU, which the
program loads and runs work-item by work-item when it launches a kernel. So results are really computed and a
wrong kernel computes wrong ones; how long it takes says nothing about a GPU. What runs is what the bundle
holds: ``--offload-host-only -Xclang -fcuda-include-gpubinary -Xclang FILE`` puts any bundle into host code.

    bench = rpl_closed_loop_bench          # pytest fixture: hipcc and rocprofv3 stand-ins first on PATH
    bench.hipcc("-O3", "smooth.hip", "-o", "smooth", cwd=folder)
    read_code_objects(folder / "smooth")

What a source may use of HIP is in ``include/``: launches with ``<<<>>>`` and ``hipLaunchKernelGGL``, memory,
streams, events and error calls (all synchronous), modules from files, LDS, ``__syncthreads``, shuffles and
ballots of 64 lanes, atomics, float mathematics (for ``std::`` it includes ``<cmath>`` itself). The bundle
keeps the bytes of the source it was compiled from, and what it includes with quotes: the timing model of the
rocprofv3 stand-in looks there.
As with hipcc, device code holds an id of the source's path and the options, the output's name among them.
``RPL_STANDIN_CLANG`` names another clang++.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from rpl_testkit.hipcc_standin.main import KEPT_VARIABLE
from rpl_testkit.launchers import python_program, write_launcher


def install_hipcc(directory: Path) -> Path:
    """Write an executable ``hipcc`` into ``directory`` (created if absent) and return its path."""
    kept = f"{KEPT_VARIABLE}={shlex.quote(str(directory.absolute()))}"
    note = "Synthetic stand-in, not the compiler driver of ROCm."
    words = python_program("rpl_testkit.hipcc_standin.main", "main(sys.argv[1:])")
    return write_launcher(directory / "hipcc", note, f"{kept} exec {shlex.join(words)}")


def standin_places() -> str:
    """What the stand-in needs to read, for the variable ``RPL_SANDBOX_READ``: Python and these packages."""
    import rpl_codeobject
    import rpl_core

    interpreter = (sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parents[1]))
    files = (__file__, rpl_codeobject.__file__, rpl_core.__file__)
    packages = (str(Path(file).resolve().parents[1]) for file in files if file is not None)
    return os.pathsep.join((*interpreter, str(Path(__file__).resolve().parents[2]), *packages))
