"""CPU time and memory from a rocpd database to the four documents, as a user runs it: one process per case.

Databases are synthetic (by rpl_testkit.rocpd_writer, seeded): S streams, every eighth dispatch waits for
another stream through an event, all HIP calls with all their arguments. The whole process is measured, start
of the interpreter and imports included: CPU seconds of user and system, peak resident memory. Beside it the
plain lower bound in the same run: reading the same columns with sqlite3 and nothing else. Page cache warm.

    python benchmarks/execution_graph.py                # 100 k and 1 M; writing 1 M with calls takes minutes
    python benchmarks/execution_graph.py --full         # 5 M as well
    python benchmarks/execution_graph.py --check        # exit 1 if a target is missed
    python benchmarks/execution_graph.py --keep DIR     # keep the databases for the next time
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import attrs
import numpy as np
from synthetic_recording import Program

from rpl_testkit.rocpd_writer import write_rocpd

# Runs in the measured process; stages are CPU seconds inside it.
_STAGES = """
import sys, time
from pathlib import Path
start = time.process_time()
from rpl_rocprofv3.readers.catalog import RocpdReader
from rpl_analysis.execution_graph.build import execution_graph
imported = time.process_time()
reader = RocpdReader()
(trace,) = reader.read(reader.claim([Path(sys.argv[1])])[0])
read = time.process_time()
graph = execution_graph(trace, 0, include_copies=True)
built = time.process_time()
edges = sum(e.count for e in graph.edges if e.kind == "event")
print(imported - start, read - imported, built - read, graph.critical_path_ns, graph.makespan_ns, edges)
"""
# The graph with its waits given: both weightings, path, sums and 15 what-ifs, from database to JSON.
_EDGES_GIVEN = """
import json, sys
from pathlib import Path
import numpy as np
from rpl_rocprofv3.readers.catalog import RocpdReader
from rpl_analysis.critical_path import (
    CrossEdges, Scenario, build_graph, solve, sum_symbols, trace_path, weigh, what_if
)
reader = RocpdReader()
(trace,) = reader.read(reader.claim([Path(sys.argv[1])])[0])
rows = trace.dispatches
row_of = np.empty(len(rows) + 1, np.int64)
row_of[rows.dispatch_id] = np.arange(len(rows))
source, target = row_of[np.load(sys.argv[2])].T
graph = build_graph(rows.stream, rows.begin_ns, rows.end_ns, CrossEdges(source=source, target=target))
alone, executed = weigh(graph, "exec_only"), weigh(graph, "as_executed")
solution = solve(graph, alone)
solve(graph, executed)
path = trace_path(graph, alone)
sums = sum_symbols(graph, solution, path, rows.kernel)
leading = sums.symbol[np.argsort(-sums.on_path_ns)[:5]].tolist()
scenarios = [Scenario(symbol, speedup) for symbol in leading for speedup in (1.5, 2.0, float("inf"))]
answers = [answer.predicted_ns for answer in what_if(graph, alone, rows.kernel, scenarios)]
print(json.dumps([path.critical_path_ns, graph.edges.size, answers, path.rows.tolist()]))
"""
_COMMAND = "from rpl_core.cli import main; raise SystemExit(main())"
_LOWER_BOUND = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
query = 'SELECT kernel_id, stream_id, agent_id, "start", "end" FROM rocpd_kernel_dispatch'
print(sum(1 for _ in connection.execute(query)))
"""


@attrs.frozen(kw_only=True)
class Case:
    """What is written, and targets in CPU seconds and MB (None for no target)."""

    dispatches: int
    streams: int
    with_calls: bool
    most_cpu_s: float | None = None
    most_mb: float | None = None
    large: bool = False
    edges_given: bool = False

    @property
    def name(self) -> str:
        calls = "-calls" if self.with_calls else "-edges" if self.edges_given else ""
        return f"{self.dispatches // 1000}k-{self.streams}{calls}"


# Targets: 100 k whole process 0.5 CPU-s; 1 M, one stream 1.5 CPU-s and 250 MB; 1 M, 8 streams with 125 k
# waits resolved from API calls 3 CPU-s and 400 MB, with the waits given 2.5 CPU-s and 300 MB; 5 M, one stream
# 8 CPU-s and 1.2 GB, 8 streams 8 CPU-s and 900 MB, growth at most 6 from 1 M.
CASES = (
    Case(dispatches=100_000, streams=8, with_calls=False, most_cpu_s=0.5),
    Case(dispatches=100_000, streams=8, with_calls=True),
    Case(dispatches=1_000_000, streams=1, with_calls=False, most_cpu_s=1.5, most_mb=250),
    Case(dispatches=1_000_000, streams=8, with_calls=False, edges_given=True, most_cpu_s=2.5, most_mb=300),
    Case(dispatches=1_000_000, streams=8, with_calls=True, most_cpu_s=3, most_mb=400),
    Case(dispatches=5_000_000, streams=1, with_calls=False, most_cpu_s=8, most_mb=1200, large=True),
    Case(dispatches=5_000_000, streams=8, with_calls=False, most_cpu_s=8, most_mb=900, large=True),
)
MOST_GROWTH = 6.0
_RUNS = 3


@attrs.frozen(kw_only=True)
class Figures:
    """Of one case: the whole command (best, median and most memory), and stages in a process of their own."""

    cpu_s: float
    median_cpu_s: float
    peak_mb: float
    import_s: float
    read_s: float
    graph_s: float
    sqlite_s: float
    dag_bytes: int | None
    event_edges: int


def write_database(case: Case, path: Path) -> None:
    """Write the recording of ``case``, streaming."""
    recording = Program(case.dispatches, case.streams).recording(case.name, with_calls=case.with_calls)
    write_rocpd(path, recording, synthetic=True)


def write_edges(case: Case, path: Path) -> None:
    """Write the ends of all waits (dispatch ids), for the case that does not have to find them."""
    np.save(path, np.array(list(Program(case.dispatches, case.streams).waits()), np.int64))


def measure(case: Case, path: Path) -> Figures:
    """Run the command and the stages, each in a process of its own."""
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, "-c", _COMMAND, "analyze", str(path), "-o", output, "--quiet"]
        if case.edges_given:
            command = [sys.executable, "-c", _EDGES_GIVEN, str(path), str(path.with_suffix(".npy"))]
        # The first run may still have to write byte code: the best of several counts.
        runs = [_run(command) for _ in range(_RUNS)]
        dag = Path(output) / "dag.json"
        dag_bytes = dag.stat().st_size if dag.exists() else None
    _, _, stages = _run([sys.executable, "-c", _STAGES, str(path)])
    sqlite_s, _, _ = _run([sys.executable, "-c", _LOWER_BOUND, str(path)])
    import_s, read_s, graph_s, _, _, edges = stages.split()
    return Figures(
        cpu_s=min(cpu_s for cpu_s, _, _ in runs),
        median_cpu_s=median(cpu_s for cpu_s, _, _ in runs),
        peak_mb=max(peak_mb for _, peak_mb, _ in runs),
        import_s=float(import_s),
        read_s=float(read_s),
        graph_s=float(graph_s),
        sqlite_s=sqlite_s,
        dag_bytes=dag_bytes,
        event_edges=int(edges),
    )


def _run(command: list[str]) -> tuple[float, float, str]:
    """CPU seconds, peak MB and standard output of one process."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output


def environment() -> dict[str, str]:
    """As an installed program runs: byte code is cached, wherever the benchmark itself keeps none."""
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**settings, "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "rpl-benchmark-bytecode")}


def missed(case: Case, figures: Figures) -> list[str]:
    """The targets that the figures do not reach, in words."""
    found = []
    if case.most_cpu_s is not None and figures.cpu_s > case.most_cpu_s:
        found.append(f"{case.name}: {figures.cpu_s:.2f} CPU-s > {case.most_cpu_s}")
    if case.most_mb is not None and figures.peak_mb > case.most_mb:
        found.append(f"{case.name}: {figures.peak_mb:.0f} MB > {case.most_mb:.0f}")
    return found


def run_case(case: Case, folder: Path) -> Figures:
    """Write what is missing, warm the page cache, measure."""
    path = folder / f"{case.name}.db"
    if not path.exists():
        started = time.monotonic()
        _apart(write_database, case, path)
        print(
            f"  wrote {path.name}: {path.stat().st_size / 1e6:.0f} MB in {time.monotonic() - started:.0f} s"
        )
    if case.edges_given:
        _apart(write_edges, case, path.with_suffix(".npy"))
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass
    return measure(case, path)


def _apart(write: Callable[[Case, Path], None], case: Case, path: Path) -> None:
    """Write in a process of its own: the peak of a child begins at the memory of its parent."""
    process = multiprocessing.get_context("spawn").Process(target=write, args=(case, path))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{path} could not be written")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed")
    parser.add_argument("--full", action="store_true", help="5 M dispatches as well")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="keep the databases here")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON at the end")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    failures: list[str] = []
    results: dict[str, Figures] = {}
    print("case             | CPU s median  peak MB | import  read  graph | sqlite3 | dag.json | waits")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for case in CASES:
            if case.large and not options.full:
                continue
            figures = results[case.name] = run_case(case, folder)
            size = f"{(figures.dag_bytes or 0) / 1000:5.0f} KB"
            print(
                f"{case.name:16s} | {figures.cpu_s:5.2f} {figures.median_cpu_s:6.2f} "
                f"{figures.peak_mb:8.0f} | {figures.import_s:6.2f} {figures.read_s:5.2f} "
                f"{figures.graph_s:6.2f} | {figures.sqlite_s:7.2f} | {size} | {figures.event_edges}",
                flush=True,
            )
            failures += missed(case, figures)
    one, five = results.get("1000k-1"), results.get("5000k-1")
    if one and five and five.cpu_s / one.cpu_s > MOST_GROWTH:
        failures.append(f"growth from 1 M to 5 M {five.cpu_s / one.cpu_s:.1f} > {MOST_GROWTH}")
    if options.json:
        print(json.dumps({name: attrs.asdict(figures) for name, figures in results.items()}, indent=2))
    for failure in failures:
        print(f"missed: {failure}")
    return 1 if options.check and failures else 0


if __name__ == "__main__":
    sys.exit(main())
