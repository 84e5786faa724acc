"""CPU time and memory from a rocpd database to the four documents, as a user runs it: one process per case.

Databases are synthetic (written by rpl_core.rocpd_writer, seeded): S streams, every eighth dispatch waits for
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
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.rocpd_writer import (
    AgentRow,
    CodeObjectRow,
    DispatchRow,
    KernelRow,
    ProcessRow,
    QueueRow,
    RegionArgument,
    RegionRow,
    RocpdContents,
    StreamRow,
    guid_from_seed,
    write_rocpd,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_KERNELS = 60
_QUEUES = 4
_WAIT_EVERY = 8
_BEGIN_NS = 10**14
_CATEGORY = "HIP_RUNTIME_API_EXT"
_LAUNCH_ARGUMENTS = (
    RegionArgument("void const*", "function_address", "0x401000"),
    RegionArgument("dim3", "numBlocks", "{z=1, y=1, x=1024}"),
    RegionArgument("dim3", "dimBlocks", "{z=1, y=1, x=256}"),
    RegionArgument("void**", "args", "0x7ffd0000"),
    RegionArgument("unsigned long", "sharedMemBytes", "0"),
)

# Runs in the measured process; stages are CPU seconds inside it.
_STAGES = """
import sys, time
from pathlib import Path
start = time.process_time()
from rpl_rocprofv3.readers.rocpd_reader import RocpdReader
from rpl_core.analysis.execution_graph.build import execution_graph
imported = time.process_time()
reader = RocpdReader()
(trace,) = reader.read(reader.claim([Path(sys.argv[1])])[0])
read = time.process_time()
graph = execution_graph(trace, 0, include_copies=True)
built = time.process_time()
edges = sum(e.count for e in graph.edges if e.kind == "event")
print(imported - start, read - imported, built - read, graph.critical_path_ns, graph.makespan_ns, edges)
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

    @property
    def name(self) -> str:
        calls = "-calls" if self.with_calls else ""
        return f"{self.dispatches // 1000}k-{self.streams}{calls}"


# Targets: 100 k whole process 0.5 CPU-s; 1 M, one stream 1.5 CPU-s and 250 MB; 1 M, 8 streams with 125 k
# waits resolved from API calls 8 CPU-s; 5 M, one stream 8 CPU-s and 1.2 GB, growth at most 6 from 1 M.
CASES = (
    Case(dispatches=100_000, streams=8, with_calls=False, most_cpu_s=0.5),
    Case(dispatches=100_000, streams=8, with_calls=True),
    Case(dispatches=1_000_000, streams=1, with_calls=False, most_cpu_s=1.5, most_mb=250),
    Case(dispatches=1_000_000, streams=8, with_calls=True, most_cpu_s=8),
    Case(dispatches=5_000_000, streams=1, with_calls=False, most_cpu_s=8, most_mb=1200, large=True),
    Case(dispatches=5_000_000, streams=8, with_calls=False, most_cpu_s=15, most_mb=1200, large=True),
)
MOST_GROWTH = 6.0


@attrs.frozen(kw_only=True)
class Figures:
    """Of one case: the whole command, and the stages inside a process of their own."""

    cpu_s: float
    peak_mb: float
    import_s: float
    read_s: float
    graph_s: float
    sqlite_s: float
    dag_bytes: int
    event_edges: int


class Program:
    """A host program that keeps a GPU busy: its calls and dispatches, the same for each pass over them."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def dispatches(self) -> Iterator[DispatchRow]:
        """Rows in order of submission."""
        yield from (row for row in self._play() if isinstance(row, DispatchRow))

    def calls(self) -> Iterator[RegionRow]:
        """Rows in order of begin."""
        yield from (row for row in self._play() if isinstance(row, RegionRow))

    def _play(self) -> Iterator[DispatchRow | RegionRow]:
        case, rnd = self._case, random.Random(11)
        now, stack = _BEGIN_NS, 0
        free = [now] * (case.streams + 1)
        for number in range(case.dispatches):
            stream = number % case.streams + 1
            earliest = free[stream] + rnd.randrange(500, 3_000)
            if case.streams > 1 and number % _WAIT_EVERY == _WAIT_EVERY - 1:
                other = rnd.randrange(1, case.streams) % case.streams + 1
                event = hex(0x55D0_C0B0_0000 + 0x40 * (number % 4096))
                yield _call("hipEventRecord", stack + 1, now, _event(event), _stream(other))
                yield _call("hipStreamWaitEvent", stack + 2, now + 700, _stream(stream), _event(event))
                stack, now = stack + 2, now + 1_400
                earliest = max(earliest, free[other] + 2_000)
            stack += 1
            yield _call("hipLaunchKernel", stack, now, *_LAUNCH_ARGUMENTS, _stream(stream))
            begin = max(earliest, now + 4_000)
            free[stream] = begin + rnd.randrange(2_000, 50_000)
            yield DispatchRow(
                dispatch_id=number + 1,
                kernel_id=rnd.randrange(_KERNELS) % (number % _KERNELS + 1) + 1,
                agent=1,
                queue_id=stream % _QUEUES + 1,
                stream_id=stream,
                begin_ns=begin,
                end_ns=free[stream],
                grid=(65_536, 1, 1),
                workgroup=(256, 1, 1),
                stack_id=stack,
            )
            now += 2_500


def _call(name: str, stack: int, begin_ns: int, *arguments: RegionArgument) -> RegionRow:
    return RegionRow(name, _CATEGORY, stack, begin_ns, begin_ns + 600, arguments)


def _stream(stream: int) -> RegionArgument:
    return RegionArgument("ihipStream_t*", "stream", hex(0x55D0_C0A0_0000 + 0x1000 * stream))


def _event(event: str) -> RegionArgument:
    return RegionArgument("ihipEvent_t*", "event", event)


def write_database(case: Case, path: Path) -> None:
    """Write the recording of ``case``, streaming."""
    program = Program(case)
    contents = RocpdContents(
        guid=guid_from_seed(f"execution graph {case.name}"),
        process=ProcessRow(100, "./benchmark", _BEGIN_NS - 10**9, _BEGIN_NS + 10**12),
        agents=(
            AgentRow(index=0, kind="CPU", name="cpu", product_name="cpu"),
            AgentRow(index=1, kind="GPU", name="gfx942", product_name="MI300X", device_id=29857),
        ),
        kernels=tuple(
            KernelRow(k, f"kernel_{k}(float*)", f"_Z9kernel_{k}Pf") for k in range(1, _KERNELS + 1)
        ),
        dispatches=program.dispatches(),
        regions=program.calls() if case.with_calls else (),
        code_objects=(CodeObjectRow(1, 1, "file://benchmark"),),
        queues=tuple(QueueRow(q, f"Queue {q - 1}") for q in range(1, _QUEUES + 1)),
        streams=tuple(StreamRow(s, f"Stream {s - 1}") for s in range(1, case.streams + 1)),
        thread_ids=(100,),
    )
    write_rocpd(path, contents, synthetic=True)


def measure(path: Path) -> Figures:
    """Run the command and the stages, each in a process of its own."""
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, "-c", _COMMAND, "analyze", str(path), "-o", output, "--quiet"]
        # Two runs, the better one: the first may still have to write byte code.
        cpu_s, peak_mb, _ = min(_run(command) for _ in range(2))
        dag_bytes = (Path(output) / "dag.json").stat().st_size
    _, _, stages = _run([sys.executable, "-c", _STAGES, str(path)])
    sqlite_s, _, _ = _run([sys.executable, "-c", _LOWER_BOUND, str(path)])
    import_s, read_s, graph_s, _, _, edges = stages.split()
    return Figures(
        cpu_s=cpu_s,
        peak_mb=peak_mb,
        import_s=float(import_s),
        read_s=float(read_s),
        graph_s=float(graph_s),
        sqlite_s=sqlite_s,
        dag_bytes=dag_bytes,
        event_edges=int(edges),
    )


def _run(command: list[str]) -> tuple[float, float, str]:
    """CPU seconds, peak MB and standard output of one process."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment())
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output


def _environment() -> dict[str, str]:
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
        write_database(case, path)
        print(
            f"  wrote {path.name}: {path.stat().st_size / 1e6:.0f} MB in {time.monotonic() - started:.0f} s"
        )
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass
    return measure(path)


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
    print("case             | CPU s  peak MB | import  read  graph | sqlite3 | dag.json KB | event edges")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for case in CASES:
            if case.large and not options.full:
                continue
            figures = results[case.name] = run_case(case, folder)
            print(
                f"{case.name:16s} | {figures.cpu_s:5.2f} {figures.peak_mb:8.0f} | {figures.import_s:6.2f} "
                f"{figures.read_s:5.2f} {figures.graph_s:6.2f} | {figures.sqlite_s:7.2f} | "
                f"{figures.dag_bytes / 1000:11.0f} | {figures.event_edges}",
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
