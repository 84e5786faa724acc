"""The graph stage beside the critical-path analysis of HolisticTraceAnalysis, on the same program in one run.

Both get one synthetic program: kernels on eight streams, every launch, every eighth kernel waiting for
another stream. rpl reads it as a rocpd database, HTA as the Kineto trace that it knows. Timed is the analysis
alone, CPU seconds, reading left out on both sides; each in a process of its own, best of the runs.

The stages are not the same work. rpl: find the dependencies among the calls, longest path, slack, sums, idle
time, 60 what-ifs in two weightings. HTA: two graph nodes per event and the longest path by networkx.

HTA needs pandas below 3, so it stays out of the project's environment:

    python -m venv HTA && HTA/bin/pip install 'pandas<3' HolisticTraceAnalysis
    python benchmarks/hta_peer.py --hta-python HTA/bin/python [--check]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from synthetic_recording import BEGIN_NS, Program

from rpl_testkit.rocpd_writer import DispatchRow, RegionRow, write_rocpd

_STREAMS = 8
_RUNS = 3
#: HTA counts whole microseconds and drops what takes none: each stands for this many ns.
_TICK_NS = 50
LEAST_RATIO = 40.0
_OWN = """
import json, sys, time
from pathlib import Path
from rpl_rocprofv3.readers.catalog import RocpdReader
from rpl_analysis.execution_graph.build import execution_graph
reader = RocpdReader()
start = time.process_time()
(trace,) = reader.read(reader.claim([Path(sys.argv[1])])[0])
read = time.process_time()
graph = execution_graph(trace, 0, include_copies=True)
edges = sum(edge.count for edge in graph.edges)
print(json.dumps([read - start, time.process_time() - read, graph.nodes, edges]))
"""
_HTA = """
import json, sys, time
from hta.trace_analysis import TraceAnalysis
start = time.process_time()
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
read = time.process_time()
graph, success = analysis.critical_path_analysis(rank=0, annotation="", instance_id=None)
assert success, "HTA found no critical path"
figures = [read - start, time.process_time() - read, graph.number_of_nodes(), graph.number_of_edges()]
print(json.dumps(figures))
"""
_WORKS = "import hta.trace_analysis, pandas; print(pandas.__version__)"


def kineto_trace(program: Program) -> dict[str, object]:
    """The program as PyTorch's profiler would have recorded it."""
    events: list[dict[str, object]] = [
        _named("process_name", 100, 100, "python"),
        _named("thread_name", 100, 100, "thread 100"),
    ]
    recorded: dict[str, tuple[int, int]] = {}
    for row in program.play():
        if isinstance(row, DispatchRow):
            where = {"device": 0, "context": 1, "stream": row.stream_id, "correlation": row.stack_id}
            events.append(
                _event("kernel", f"kernel_{row.kernel_id}", 0, row.stream_id, row.begin_ns, row.end_ns, where)
            )
            continue
        events.extend(_call(row, recorded))
    properties = [{"id": 0, "name": "MI300X", "totalGlobalMem": 1}]
    return {"schemaVersion": 1, "deviceProperties": properties, "traceEvents": events}


def _call(row: RegionRow, recorded: dict[str, tuple[int, int]]) -> list[dict[str, object]]:
    """A call, and for a wait the synchronisation that it puts into its stream."""
    arguments = {argument.name: argument.value for argument in row.arguments}
    name = f"cuda{row.name.removeprefix('hip')}"
    correlation = {"correlation": row.stack_id, "cbid": 211}
    # HTA walks the operators of a thread; each call is made inside one, as in a PyTorch program.
    events = [
        _event("cpu_op", "aten::step", 100, 100, row.begin_ns - 50, row.end_ns + 50, {}),
        _event("cuda_runtime", name, 100, 100, row.begin_ns, row.end_ns, correlation),
    ]
    if row.name == "hipEventRecord":
        recorded[arguments["event"]] = row.stack_id, _stream(arguments["stream"])
    if row.name == "hipStreamWaitEvent":
        source, awaited = recorded[arguments["event"]]
        stream = _stream(arguments["stream"])
        if stream == awaited:
            return events  # says nothing, and HTA takes it for a fault of the trace
        where: dict[str, object] = {
            "device": 0,
            "context": 1,
            "stream": stream,
            "correlation": row.stack_id,
            "cuda_sync_kind": "Stream Wait Event",
            "wait_on_stream": awaited,
            "wait_on_cuda_event_record_corr_id": source,
            "wait_on_cuda_event_id": source,
        }
        events.append(
            _event("cuda_sync", "Stream Wait Event", 0, stream, row.begin_ns, row.begin_ns + 1000, where)
        )
    return events


def _stream(pointer: str) -> int:
    return (int(pointer, 16) >> 12) & 0xFF


def _event(
    category: str, name: str, process: int, thread: int, begin_ns: int, end_ns: int, args: dict[str, object]
) -> dict[str, object]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": process,
        "tid": thread,
        "ts": (begin_ns - BEGIN_NS) // _TICK_NS,
        "dur": (end_ns - begin_ns) // _TICK_NS,
        "args": args,
    }


def _named(kind: str, process: int, thread: int, name: str) -> dict[str, object]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "ts": 0, "args": {"name": name}}


def measure(python: str, code: str, path: Path) -> list[float]:
    """CPU seconds of reading and of the analysis (best of the runs), nodes and edges."""
    best: list[float] = []
    for _ in range(_RUNS):
        done = subprocess.run([python, "-c", code, str(path)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{python} failed:\n{done.stderr[-2000:]}")
        figures = json.loads(done.stdout.splitlines()[-1])
        best = min(best or figures, figures, key=lambda entry: entry[1])
    return best


def why_not(python: str | None) -> str | None:
    """Why HTA can't be asked, or None."""
    if python is None:
        return "no interpreter with HolisticTraceAnalysis was named (--hta-python)"
    try:
        done = subprocess.run([python, "-c", _WORKS], capture_output=True, text=True, check=False)
    except OSError as error:
        return f"{python}: {error.strerror}"
    if done.returncode:
        return f"{python} has no working HolisticTraceAnalysis: {(done.stderr.splitlines() or ['?'])[-1]}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hta-python", metavar="PATH", help="an interpreter with HolisticTraceAnalysis")
    parser.add_argument("--kernels", type=int, default=100_000)
    parser.add_argument("--check", action="store_true", help=f"exit 1 below {LEAST_RATIO:.0f} times")
    options = parser.parse_args()
    reason = why_not(options.hta_python)
    if reason:
        print(f"skipped: {reason}")
        return 0
    program = Program(options.kernels, _STREAMS)
    with tempfile.TemporaryDirectory() as folder:
        database, trace = Path(folder) / "own_results.db", Path(folder) / "kineto.json"
        write_rocpd(database, program.recording("peer", with_calls=True), synthetic=True)
        trace.write_text(json.dumps(kineto_trace(program)), encoding="utf-8")
        own = measure(sys.executable, _OWN, database)
        peer = measure(options.hta_python, _HTA, trace)
    print(f"{options.kernels} kernels, CPU seconds: reading, analysis (nodes, edges of the graph)")
    for name, (read_s, analysis_s, nodes, edges) in (("rpl", own), ("HTA", peer)):
        print(f"  {name} {read_s:7.2f} {analysis_s:7.3f} ({nodes:.0f}, {edges:.0f})")
    ratio = peer[1] / own[1]
    with_reading = sum(peer[:2]) / sum(own[:2])
    print(f"analysis: HTA takes {ratio:.0f} times as long; with reading {with_reading:.0f} times")
    return 1 if options.check and ratio < LEAST_RATIO else 0


if __name__ == "__main__":
    sys.exit(main())
