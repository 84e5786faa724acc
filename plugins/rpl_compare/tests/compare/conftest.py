"""Run directories with exactly the times that a test is about, and a switch for judging synthetic data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs
import pytest

from rpl_core.contracts.common import ArtefactEntry, PassEntry, RunManifest
from rpl_core.files import sha256_of
from rpl_testkit.fixtures import Launch, RocpdBuilder

#: One run: kernel -> durations of its dispatches in ns, executed one after the other.
Run = Mapping[str, Sequence[int]]


def launches(run: Run, gap_ns: int = 1000) -> list[Launch]:
    rows, now = [], 1_000_000
    for kernel, durations in run.items():
        for duration in durations:
            rows.append(Launch(kernel, now, now + duration))
            now += max(duration, 0) + gap_ns
    return rows


@attrs.frozen
class RunDirectories:
    """Call it with a name and runs: writes a run directory of rocpd files and returns its path."""

    folder: Path

    def under(self, name: str) -> RunDirectories:
        """The same for a folder below."""
        return RunDirectories(self.folder / name)

    def __call__(
        self,
        name: str,
        runs: Sequence[Run],
        *,
        created_utc: str = "2026-01-01T00:00:00Z",
        processes: int = 1,
        **manifest: object,
    ) -> Path:
        directory = self.folder / name
        entries = []
        for number, run in enumerate(runs, 1):
            place = directory / ".rocpd_profile" / f"run_{number}"
            place.mkdir(parents=True)
            builder = RocpdBuilder(place)
            files = [
                builder(launches(run), name=f"{name}_{number}_{process}.db", pid=100 * number + process)
                for process in range(processes)
            ]
            entries.append(_entry(directory, f"run_{number}", files))
        values = {"tool_version": "0.1.0", "collector": "rocprofv3", "command": ("./app",), **manifest}
        document = RunManifest(state="complete", created_utc=created_utc, passes=tuple(entries), **values)
        (directory / "run.json").write_text(document.model_dump_json())
        return directory


def _entry(directory: Path, name: str, files: list[Path]) -> PassEntry:
    artefacts = tuple(
        ArtefactEntry(
            path=file.relative_to(directory).as_posix(), sha256=sha256_of(file), bytes=file.stat().st_size
        )
        for file in files
    )
    return PassEntry(
        name=name,
        role="timing",
        state="complete",
        directory=f".rocpd_profile/{name}",
        command=("./app",),
        artefacts=artefacts,
    )


@pytest.fixture
def make_runs(tmp_path: Path) -> RunDirectories:
    return RunDirectories(tmp_path)


@pytest.fixture
def synthetic_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings of the test kit are synthetic; without this switch they never give a verdict."""
    monkeypatch.setenv("RPL_ALLOW_SYNTHETIC_GATES", "1")


@pytest.fixture
def steady() -> Callable[..., list[Run]]:
    """``steady(100_000, 8)``: eight runs of kernel "k" (4 dispatches), others by name (2 dispatches)."""
    return steady_runs


def steady_runs(
    kernel_ns: int, runs: int, spread: float = 0.004, kernel: str = "k", **others: int
) -> list[Run]:
    """Runs around ``kernel_ns`` with a fixed pattern of small deviations; others stay as given."""
    pattern = (0.0, 1.0, -1.0, 0.4, -0.5, 0.8, -0.7, 0.2, -0.3, 0.6, -0.9, 0.1)
    made = []
    for number in range(runs):
        factor = 1 + spread * pattern[number % len(pattern)]
        run = {kernel: [round(kernel_ns * factor)] * 4}
        other = 1 + spread * pattern[(number + 5) % len(pattern)]
        run |= {name: [round(time * other)] * 2 for name, time in others.items()}
        made.append(run)
    return made
