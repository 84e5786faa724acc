"""The demonstration's run: kernels on three streams, copies, API calls and counters."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpl_testkit.fixtures import CommandLine


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of ``rpl demo --recorded`` with one timing run, made in this process."""
    folder = tmp_path_factory.mktemp("demo") / "run"
    with pytest.MonkeyPatch.context() as patch:
        CommandLine(patch)("demo", "--recorded", "--runs", "1", "-o", folder).assert_ok()
    return folder
