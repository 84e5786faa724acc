"""A stand-in profiler on PATH, run as the separate program that it is."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from rpl_testkit.rocprofv3_standin import install_standin

TIME_LIMIT_S = 60


@attrs.frozen
class Profiler:
    """Runs `rocprofv3` in its own folder with a clean environment."""

    program: Path
    directory: Path
    started: list[subprocess.Popen[str]] = attrs.field(factory=list)

    def environment(self, **extra: str) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("ROCPROF", "RPL_"))}
        return {**kept, **extra}

    def __call__(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.program), *arguments],
            cwd=self.directory,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start in a process group of its own, which the test's end kills."""
        process = subprocess.Popen(
            [str(self.program), *arguments],
            cwd=self.directory,
            env=self.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def end_all(self) -> None:
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture
def profiler(tmp_path: Path) -> Iterator[Profiler]:
    directory = tmp_path / "work dir"
    directory.mkdir()
    profiler = Profiler(install_standin(tmp_path / "bin dir"), directory)
    yield profiler
    profiler.end_all()


@pytest.fixture
def results(profiler: Profiler) -> Callable[[str], list[Path]]:
    def find(pattern: str) -> list[Path]:
        return sorted(profiler.directory.glob(f"**/{pattern}"))

    return find
