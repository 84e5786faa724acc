"""A rocprofv3 of a few lines that does exactly what a test says, and collectors that find it.

The stand-in of the test kit behaves like the real tool; this one can misbehave in any way.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rpl_core.interfaces.collector import CollectionPlan, CollectRequest, PassOutcome, PlannedPass
from rpl_rocprofv3.collector.rocprof import RocprofCollector

#: Switches: FAKE_VERSION, FAKE_SAYS (lines before the end), FAKE_END (exit status or signal name),
#: FAKE_FILES (names below the output directory: "+" with, "-" without a dispatch; counters as asked for).
FAKE = r"""
import os, pathlib, signal, sqlite3, subprocess, sys

arguments = sys.argv[1:]
if arguments == ["--version"]:
    print(os.environ.get("FAKE_VERSION", "         version: 1.0.0\n    rocm_version: 7.0.0"))
    sys.exit(0)
end = arguments.index("--")
own, application = arguments[:end], arguments[end + 1:]
directory = pathlib.Path(own[own.index("-d") + 1])
prefix = own[own.index("-o") + 1].replace("%pid%", str(os.getpid()))
(directory / "arguments").write_text("\0".join(own))
status = subprocess.call(application)

def database(path, dispatched):
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "PRAGMA synchronous = OFF;"
            "CREATE TABLE rocpd_kernel_dispatch_1 (id INTEGER);"
            "CREATE VIEW rocpd_kernel_dispatch AS SELECT * FROM rocpd_kernel_dispatch_1;"
            "CREATE TABLE rocpd_pmc_event (id INTEGER);"
            "CREATE TABLE rocpd_info_process_1 (id INTEGER, command TEXT, environment TEXT);"
        )
        connection.execute(
            "INSERT INTO rocpd_info_process_1 VALUES (1, 'app', ?)", (repr(dict(os.environ)) * 20,)
        )
        if dispatched:
            connection.execute("INSERT INTO rocpd_kernel_dispatch_1 VALUES (1)")
            if "--pmc" in own and "FAKE_NO_COUNTERS" not in os.environ:
                connection.execute("INSERT INTO rocpd_pmc_event VALUES (1)")

def table(path, dispatched):
    path.write_text("Kind,Dispatch_Id\n" + ("KERNEL_DISPATCH,1\n" if dispatched else ""))

csv = "csv" in own
default = f"+{prefix}_kernel_trace.csv" if csv else f"+{prefix}_results.db"
for entry in filter(None, os.environ.get("FAKE_FILES", default).split(":")):
    path = directory / entry[1:]
    path.parent.mkdir(parents=True, exist_ok=True)
    (table if csv else database)(path, entry[0] == "+")
    print(f"E20250101 00:00:00.0 1 generateRocpd.cpp:603] Opened result file: {path} (UUID=1)", flush=True)
print(os.environ.get("FAKE_SAYS", ""), flush=True)
how = os.environ.get("FAKE_END")
if how and how.startswith("SIG"):
    os.kill(os.getpid(), signal.Signals[how])
sys.exit(int(how) if how else status)
"""


class Recorder:
    """Runs passes of one collector in ``run_directory`` and keeps the log lines it hears."""

    def __init__(self, executable: Path, run_directory: Path) -> None:
        self.executable = executable
        self.run_directory = run_directory
        self.collector = RocprofCollector(str(executable))
        self.lines: list[str] = []

    def plan(self, *command: str, **request: object) -> CollectionPlan:
        request.setdefault("runs", 1)
        return self.collector.plan(CollectRequest(command=command, **request))  # type: ignore[arg-type]

    def run_pass(self, planned: PlannedPass) -> PassOutcome:
        return self.collector.run(planned, self.run_directory, self.lines.append)

    def run(self, *command: str, **request: object) -> PassOutcome:
        """Plan and run the first pass."""
        return self.run_pass(self.plan(*command, **request).passes[0])

    def application_runs(self) -> bool:
        """Whether the application that printed ``pid <number>`` still executes (a zombie does not)."""
        (pid,) = [int(line.split()[1]) for line in self.lines if line.startswith("pid ")]
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        return status.rpartition(")")[2].split()[0] not in "ZX"

    def pass_directory(self, name: str = ".rocpd_profile/run_1") -> Path:
        return self.run_directory / name


def write_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return path


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    monkeypatch.delenv("RPL_ROCPROFV3", raising=False)
    executable = write_program(tmp_path / "rocm 7" / "bin" / "rocprofv3", FAKE)
    return Recorder(executable, tmp_path / "my runs" / "first")


@pytest.fixture
def application(tmp_path: Path):
    """Writes a Python program and returns its path as a word of a command."""

    def write(text: str, name: str = "app") -> str:
        return str(write_program(tmp_path / name, text))

    return write
