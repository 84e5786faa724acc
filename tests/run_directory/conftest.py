"""Run directories without a profiler: the manifest is written by the writer, the files by the test."""

from __future__ import annotations

import pytest

from rpl_core.interfaces.collector import PassOutcome, PlannedPass
from rpl_core.model.trace import TraceRole
from rpl_core.run_directory import RunDirectory


def planned(name: str, role: TraceRole = TraceRole.TIMING) -> PlannedPass:
    return PlannedPass(name, role, f"passes/{name}", ("profiler", "{directory}", "--", "./app"))


@pytest.fixture
def new_run(tmp_path):
    """``new_run("run_1", "run_2")``: a run directory with these passes planned."""

    def create(*names: str) -> RunDirectory:
        return RunDirectory.create(
            tmp_path / "run",
            command=("./app", "100"),
            collector="test",
            device="mi300x",
            device_source="--device mi300x",
            options={"runs": len(names)},
            plan=[planned(name) for name in names],
            plugins=("core 0",),
        )

    return create


@pytest.fixture
def finish_pass():
    """``finish_pass(run, "run_1", {"a.db": bytes})``: write the files and record the pass."""

    def finish(run: RunDirectory, name: str, files: dict[str, bytes]) -> None:
        folder = run.path / "passes" / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        paths = tuple(f"passes/{name}/{file}" for file in sorted(files))
        run.pass_succeeded(PassOutcome(planned(name), 0, 1.5, files=paths, tool_version="tool 1"))

    return finish
