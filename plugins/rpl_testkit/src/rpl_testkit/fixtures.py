"""What fixtures hand to a test: the command line, small recordings, and a closed loop without a GPU."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_testkit.rocpd_writer import DispatchRow, RocpdContents

_START = "import sys; from rpl_core.cli import main; sys.argv[0] = 'rpl'; sys.exit(main())"


@frozen
class Outcome:
    """What one command line did."""

    arguments: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str

    def assert_ok(self) -> Outcome:
        """Exit code 0, no traceback; returns itself so that calls can be chained."""
        return self.assert_exit(0)

    def assert_exit(self, code: int) -> Outcome:
        """The documented exit code and never a traceback."""
        if self.exit_code != code or "Traceback (most recent call last)" in self.stderr:
            raise AssertionError(f"expected exit code {code}\n{self._transcript()}")
        return self

    def json(self) -> Any:
        """The one JSON document on stdout; NaN and infinities are refused as JSON forbids them."""
        try:
            return json.loads(self.stdout, parse_constant=_refuse_constant)
        except ValueError as error:
            raise AssertionError(f"stdout is not one JSON document: {error}\n{self._transcript()}") from None

    def _transcript(self) -> str:
        return (
            f"$ rpl {' '.join(self.arguments)}\nexit code {self.exit_code}\n"
            f"--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"
        )


@frozen
class CommandLine:
    """Call it to run ``rpl`` inside the test process; ``process`` runs it in a fresh interpreter."""

    monkeypatch: pytest.MonkeyPatch

    def __call__(
        self, *arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Outcome:
        from rpl_core.cli.main import run

        words = tuple(str(argument) for argument in arguments)
        out, err = _captured(), _captured()
        with self.monkeypatch.context() as patch:
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            if cwd is not None:
                patch.chdir(cwd)
            with redirect_stdout(out), redirect_stderr(err):
                code = run(list(words))
        return Outcome(words, code, _text(out), _text(err))

    def process(
        self,
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout_s: float = 120,
    ) -> Outcome:
        """As a user would start it, with its own interpreter, signals and file descriptors."""
        import os

        words = tuple(str(argument) for argument in arguments)
        done = subprocess.run(
            [sys.executable, "-c", _START, *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            timeout=timeout_s,
        )
        return Outcome(words, done.returncode, done.stdout, done.stderr)


def _captured() -> io.TextIOWrapper:
    # Commands may write bytes, so the stream needs a buffer below the text.
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape", newline="")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8", "surrogateescape")


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


# Small rocpd files for tests, with exactly the dispatches that a test is about.


@frozen
class Launch:
    """One kernel execution. ``grid`` counts work-items; ``counters`` holds whole-GPU values."""

    kernel: str
    begin_ns: int
    end_ns: int
    stream: int = 0
    grid: tuple[int, int, int] = (64, 1, 1)
    workgroup: tuple[int, int, int] = (64, 1, 1)
    counters: Mapping[str, float] = attrs.field(factory=dict)


@frozen
class RocpdBuilder:
    """Writes rocpd files of a synthetic MI300X into ``folder``; they are stamped synthetic."""

    folder: Path

    def __call__(
        self,
        launches: Iterable[Launch | tuple[str, int, int]],
        *,
        name: str = "out_results.db",
        pid: int = 4242,
        schema_version: str = "3",
        command: str = "./app",
    ) -> Path:
        """Write one file and return its path. A tuple is (kernel, begin_ns, end_ns)."""
        from rpl_testkit.rocpd_writer import write_rocpd

        rows = [item if isinstance(item, Launch) else Launch(*item) for item in launches]
        path = self.folder / name
        write_rocpd(path, _contents(rows, name, pid, command), synthetic=True, schema_version=schema_version)
        return path


def _contents(launches: list[Launch], name: str, pid: int, command: str) -> RocpdContents:
    from rpl_testkit.rocpd_writer import (
        CodeObjectRow,
        CounterDefinitionRow,
        CounterRow,
        KernelRow,
        ProcessRow,
        QueueRow,
        RocpdContents,
        StreamRow,
        guid_from_seed,
    )
    from rpl_testkit.synthetic_recording.mi300x import GPU_AGENT, mi300x_agents

    kernels = {kernel: i for i, kernel in enumerate(dict.fromkeys(x.kernel for x in launches), 1)}
    counters = sorted({counter for launch in launches for counter in launch.counters})
    return RocpdContents(
        guid=guid_from_seed(f"{name}/{pid}"),
        process=ProcessRow(
            pid,
            command,
            begin_ns=min((x.begin_ns for x in launches), default=0),
            end_ns=max((x.end_ns for x in launches), default=0),
        ),
        agents=mi300x_agents(gpus=1),
        code_objects=(CodeObjectRow(1, GPU_AGENT, f"memory://{pid}"),),
        kernels=tuple(KernelRow(number, kernel, kernel) for kernel, number in kernels.items()),
        queues=(QueueRow(1, "Queue 1"),),
        streams=tuple(StreamRow(s, f"Stream {s}") for s in sorted({x.stream for x in launches} - {0})),
        dispatches=tuple(_dispatch(i, x, kernels[x.kernel], GPU_AGENT) for i, x in enumerate(launches, 1)),
        counters=tuple(
            CounterRow(i, counter, (float(value),))
            for i, launch in enumerate(launches, 1)
            for counter, value in sorted(launch.counters.items())
        ),
        counter_definitions=tuple(CounterDefinitionRow(c, GPU_AGENT, c.split("_")[0]) for c in counters),
    )


def _dispatch(number: int, launch: Launch, kernel_id: int, agent: int) -> DispatchRow:
    from rpl_testkit.rocpd_writer import DispatchRow

    return DispatchRow(
        dispatch_id=number,
        kernel_id=kernel_id,
        agent=agent,
        queue_id=1,
        stream_id=launch.stream,
        begin_ns=launch.begin_ns,
        end_ns=launch.end_ns,
        grid=launch.grid,
        workgroup=launch.workgroup,
    )


# A bench for the closed loop without a GPU: build with a stand-in hipcc, profile with declared times.
#
# ``declare`` says how long kernels take and which sources are faster (see the module ``scenario`` of the
# rocprofv3 stand-in); everything else is real: the compilers, the device code, the programs and their
# results.


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
    from rpl_optimize.running.sandbox import find_sandbox
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
