"""The example application, its declared times, and candidates of every kind, on the bench without a GPU."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from rpl_testkit.fixtures import ClosedLoopBench, CommandLine, Outcome, open_bench

EXAMPLE = Path(__file__).parents[4] / "examples" / "optimize" / "smooth.hip"
SMOOTH = "smooth(float const*, float const*, float*, int, int)"
FADE = "fade(float*, int, float)"
KERNELS = (
    {"name": SMOOTH, "nominal_ns": 800_000, "launches": 10, "work": {"read_bytes": 4_000_000}},
    {"name": FADE, "nominal_ns": 100_000, "launches": 10},
)
NOISE = {"cv": 0.005, "drift": 0.25, "build_offset": 0.0005, "outliers": 0.01}
#: `unroll 4` and `unroll 8` gain 10 %, and `unroll 8` moves a fifth more; `unroll 3` gains so much that
#: the other kernel dominates afterwards.
SPEED = (
    {"source_matches": r"unroll [48]\b", "kernel": SMOOTH, "factor": 0.9},
    {"source_matches": r"unroll 8\b", "kernel": SMOOTH, "hbm_factor": 1.2},
    {"source_matches": r"unroll 3\b", "kernel": SMOOTH, "factor": 0.1},
)
_LOOP = "    for (int k = 0; k < taps; ++k) {\n"
_EDITS = {
    "does not build": ("smooth", "weights[k] * in", "missing[k] * in"),
    "does not build either": ("smooth", "weights[k] * in", "absent[k] * in"),
    "wrong results": ("smooth", "k < taps; ++k) {", "k < taps - 1; ++k) {"),
    "changes nothing": ("smooth", "sum += weights[k] * in[i + k];", "sum = sum + in[i + k] * weights[k];"),
    "no faster": ("smooth", _LOOP, f"#pragma unroll 2\n{_LOOP}"),
    "moves more": ("smooth", _LOOP, f"#pragma unroll 8\n{_LOOP}"),
    "faster": ("smooth", _LOOP, f"#pragma unroll 4\n{_LOOP}"),
    "much faster": ("smooth", _LOOP, f"#pragma unroll 3\n{_LOOP}"),
    "fade does not build": ("fade", "data[i] *= factor;", "data[i] *= missing;"),
}


@attrs.frozen
class ClosedLoop:
    """Runs ``rpl optimize`` on a fresh copy of the example; ``root`` is the session's directory."""

    bench: ClosedLoopBench
    cli: CommandLine
    source: Path
    original: bytes

    CHECKED: ClassVar = ("--output-file", "smooth.out:f32", "--rtol", "1e-5")

    @property
    def root(self) -> Path:
        return self.bench.folder / "session"

    def script(self, *names: str) -> None:
        """What is proposed, by the names of ``_EDITS``."""
        parts = ("kernel", "find", "replace")
        entries = [{"summary": name, **dict(zip(parts, _EDITS[name], strict=True))} for name in names]
        self.bench.script(entries)

    @property
    def is_untouched(self) -> bool:
        """Whether the user's source is as it was."""
        return self.source.read_bytes() == self.original

    @property
    def source_sha256(self) -> str:
        return hashlib.sha256(self.source.read_bytes()).hexdigest()

    def words(self, *options: str, command: tuple[str, ...] = ("./smooth", "64", "1")) -> tuple[str, ...]:
        """The command line of a new session."""
        plugin = ("-p", "rpl_testkit.scripted_proposer")
        loop = ("--proposer", "scripted", "--auto-approve", "--runs", "2", "--device", "gfx942")
        place = ("--output", str(self.root))
        return (*plugin, "optimize", *loop, *place, *options, *command)

    def __call__(self, *options: str, **command: tuple[str, ...]) -> Outcome:
        return self.cli(*self.words(*options, **command), cwd=self.bench.folder)

    def declare_speed(self, *speed: dict[str, object]) -> None:
        """What makes the example's first kernel faster from now on."""
        self.bench.declare(KERNELS, [{"kernel": SMOOTH, **entry} for entry in speed], **NOISE)

    def rpl(self, *options: str) -> Outcome:
        """A new session with the usual proposer."""
        place = ("--auto-approve", "--runs", "2", "--device", "gfx942", "--output", str(self.root))
        return self.cli("optimize", *place, *options, "./smooth", "64", "1", cwd=self.bench.folder)

    def resume(self, *options: str) -> Outcome:
        words = ("optimize", "--resume", str(self.root), "--auto-approve", *options)
        return self.cli("-p", "rpl_testkit.scripted_proposer", *words, cwd=self.bench.folder)

    def verify(self) -> None:
        """The ledger's chain holds and its verdicts are replayed to the same."""
        self.cli("ledger", "verify", str(self.root)).assert_ok()

    def document(self) -> dict[str, Any]:
        return json.loads((self.root / "optimize.json").read_text(encoding="utf-8"))

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The data of all events of a kind, in order."""
        lines = (self.root / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
        return [line["data"] for line in map(json.loads, lines) if line["event"] == kind]


@contextmanager
def _open(folder: Path, *, ready: bool = True, programs: str = "bench-programs") -> Iterator[ClosedLoop]:
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        open_bench(folder / "bench", folder / programs, monkeypatch, ready=ready) as bench,
    ):
        source = Path(shutil.copy(EXAMPLE, bench.folder))
        bench.build(source)
        bench.declare(KERNELS, SPEED, **NOISE)
        # Declared times are synthetic; without this word no verdict would accept them.
        monkeypatch.setenv("RPL_ALLOW_SYNTHETIC_GATES", "1")
        yield ClosedLoop(bench, CommandLine(monkeypatch), source, source.read_bytes())


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[ClosedLoop]:
    """One session of a test's own."""
    with _open(tmp_path) as opened:
        yield opened


@pytest.fixture
def killable_loop(tmp_path: Path) -> Iterator[ClosedLoop]:
    """The same, with a profiler whose processes belong to whoever starts it."""
    with _open(tmp_path, ready=False) as opened:
        yield opened


@pytest.fixture
def confined_loop(tmp_path: Path) -> Iterator[ClosedLoop]:
    """The same; the profiler keeps its state in the working directory, where sandboxed runs may write."""
    with _open(tmp_path, ready=False, programs="bench/programs") as opened:
        yield opened


@pytest.fixture(scope="module")
def module_loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClosedLoop]:
    """One for all tests of a module: measuring takes seconds."""
    with _open(tmp_path_factory.mktemp("loop")) as opened:
        yield opened


@pytest.fixture(scope="session")
def accepted_session(tmp_path_factory: pytest.TempPathFactory) -> ClosedLoop:
    """A session with a candidate that was rejected for its results and one that was accepted; it is over."""
    with _open(tmp_path_factory.mktemp("accepted")) as opened:
        opened.script("wrong results", "faster")
        opened("--max-iters", "2", *opened.CHECKED).assert_ok()
    return opened


@pytest.fixture
def accepted_loop(accepted_session: ClosedLoop, monkeypatch: pytest.MonkeyPatch) -> ClosedLoop:
    """The same with a command line of the test's own."""
    return attrs.evolve(accepted_session, cli=CommandLine(monkeypatch))
