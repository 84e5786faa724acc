"""A bench for the closed loop without a GPU: build with a stand-in hipcc, profile with declared times.

``declare`` says how long kernels take and which sources are faster (see the module ``scenario`` of the
rocprofv3 stand-in); everything else is real: the compilers, the device code, the programs and their results.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.values import frozen

if TYPE_CHECKING:
    import pytest

__all__ = ["ClosedLoopBench", "open_bench"]


@frozen
class ClosedLoopBench:
    """``folder`` is where programs are built and run; ``programs`` holds ``hipcc`` and ``rocprofv3``."""

    folder: Path
    programs: Path
    monkeypatch: pytest.MonkeyPatch

    @property
    def model(self) -> Path:
        """The declared timing model; its state lies beside it."""
        return self.programs / "timing_model.json"

    def declare(
        self, kernels: Sequence[Mapping[str, Any]], speed: Sequence[Mapping[str, Any]] = (), **noise: float
    ) -> Path:
        """Declare what each process run takes from now on, and forget the runs so far."""
        content = {"kernels": list(kernels), "speed": list(speed), **noise}
        self.model.write_text(json.dumps(content, indent=1), encoding="utf-8")
        self.model.with_name(f"{self.model.name}.state").unlink(missing_ok=True)
        self.monkeypatch.setenv("RPL_STANDIN_TIMING_MODEL", str(self.model))
        return self.model

    def script(self, candidates: Sequence[Mapping[str, str]]) -> Path:
        """Have the proposer of ``rpl_testkit.scripted_proposer`` propose ``candidates``."""
        from rpl_testkit.scripted_proposer import VARIABLE

        path = self.programs / "candidates.json"
        path.write_text(json.dumps(list(candidates), indent=1), encoding="utf-8")
        self.monkeypatch.setenv(VARIABLE, str(path))
        return path

    def process_runs(self) -> int:
        """How many runs the profiler recorded since ``declare``."""
        state = self.model.with_name(f"{self.model.name}.state")
        return int(json.loads(state.read_text(encoding="utf-8"))["runs"]) if state.exists() else 0

    def hipcc(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run ``hipcc`` in ``folder``; its exit code and messages are for the caller to look at."""
        return subprocess.run(
            [str(self.programs / "hipcc"), *map(str, arguments)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def build(self, source: Path, *options: str) -> Path:
        """The program built from ``source`` with its line numbers; AssertionError when it doesn't compile."""
        program = self.folder / source.stem
        usual = ("-O3", "-g", "--offload-arch=gfx942")
        done = self.hipcc(*usual, *options, source, "-o", program.name)
        if done.returncode != 0:
            raise AssertionError(f"hipcc failed:\n{done.stderr}")
        return program


@contextmanager
def open_bench(
    folder: Path, programs: Path, monkeypatch: pytest.MonkeyPatch, *, ready: bool = True
) -> Iterator[ClosedLoopBench]:
    """Install both stand-ins in ``programs`` and put it first on PATH; ``folder`` is made.

    ``ready``: a profiler is kept running, so that each run costs a tenth; its processes are then no children
    of whoever starts it.
    """
    from rpl_optimize.isolation.sandbox import find_sandbox
    from rpl_testkit.hipcc_standin import install_hipcc, standin_places
    from rpl_testkit.requirements import require
    from rpl_testkit.rocprofv3_standin import install_standin
    from rpl_testkit.rocprofv3_standin.ready import ready_standin

    compiler = require("clang++-22")
    require("ld.lld-22")
    folder.mkdir()
    install_hipcc(programs)
    monkeypatch.setenv("RPL_SANDBOX_READ", standin_places())
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ.get('PATH', '')}")
    bench = ClosedLoopBench(folder, programs, monkeypatch)
    if find_sandbox().kind is None:  # a container without one: what is tested here is written by tests
        monkeypatch.setenv("RPL_SANDBOX", "off")
    elif ready:
        monkeypatch.setenv("RPL_SANDBOX", "builds")
    if ready:
        with ready_standin(programs, compiler):
            yield bench
        return
    install_standin(programs)
    yield bench
