"""Reading torch.profiler traces: CPU time and memory of rpl beside JSON libraries that fill the same columns.

``python benchmarks/read_torch.py TRACE.json.gz`` prints CPU seconds (best of several) and the ratio to the
fastest peer; gunzip is included for all. Peers decode the whole file with orjson, msgspec (into the same
records) or pysimdjson and fill the columns that rpl keeps; TraceLens and HTA run beside them where they are
installed. ``--large BYTES`` first repeats the events of the trace until the unpacked file is that long, and
measures each reader in a process of its own with its highest memory.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np


def unpacked(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def fill(events: list[dict[str, Any]]) -> int:
    """The columns of ``rpl_torch.columns`` from plain dictionaries; what is kept, in bytes."""
    groups: defaultdict[Any, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        groups[event.get("cat")].append(event)
    names: defaultdict[str, int] = defaultdict(lambda: len(names))
    inputs: defaultdict[Any, int] = defaultdict(lambda: len(inputs))
    shapes: defaultdict[Any, int] = defaultdict(lambda: len(shapes))
    kept: list[np.ndarray[Any, Any]] = []

    def times(found: list[dict[str, Any]]) -> None:
        begin = np.rint(np.array([e["ts"] for e in found]) * 1000.0).astype(np.int64)
        length = np.rint(np.array([e.get("dur", 0.0) for e in found]) * 1000.0).astype(np.int64)
        kept.extend((begin, begin + length, np.array([names[e["name"]] for e in found], np.int32)))

    def column(found: list[dict[str, Any]], key: str) -> None:
        kept.append(np.array([e["args"].get(key, -1) for e in found], np.int64))

    def threads(found: list[dict[str, Any]]) -> None:
        kept.append(np.array([e["tid"] for e in found], np.int64))

    for category in ("kernel", "gpu_memcpy", "gpu_memset"):
        found = groups[category]
        times(found)
        for key in ("device", "stream", "correlation", "External id", "bytes"):
            column(found, key)
        kept.append(
            np.array(
                [shapes[str(e["args"].get("grid")), str(e["args"].get("block"))] for e in found], np.int32
            )
        )
    times(groups["cuda_runtime"])
    threads(groups["cuda_runtime"])
    column(groups["cuda_runtime"], "correlation")
    column(groups["cuda_runtime"], "External id")
    for category in ("cpu_op", "user_annotation"):
        found = groups[category]
        times(found)
        threads(found)
        column(found, "External id")
        kept.append(
            np.array(
                [inputs[str(e["args"].get("Input Dims")), str(e["args"].get("Input type"))] for e in found],
                np.int32,
            )
        )
    times(groups["python_function"])
    threads(groups["python_function"])
    return sum(one.nbytes for one in kept)


def with_rpl(path: Path) -> int:
    from rpl_torch.columns import EventColumns, EventFile

    columns = EventColumns()
    for piece in EventFile(path).pieces():
        columns.add(piece)
    tables = (columns.work, columns.runtime, columns.operators, columns.frames)
    return sum(column.nbytes for table in tables for column in table.taken().values())


def with_rpl_whole(path: Path) -> int:
    """Not only the columns, but the checked, ordered trace."""
    from rpl_torch.trace_file import read_trace

    return len(read_trace(path, "torch-profiler", "", None).dispatches)


def with_msgspec(path: Path) -> int:
    """The whole file at once into the records that rpl decodes piece by piece."""
    import msgspec

    from rpl_torch.columns import Event, EventColumns

    document = msgspec.defstruct("Document", [("traceEvents", list[Event])])
    columns = EventColumns()
    columns.add(msgspec.json.decode(unpacked(path), type=document).traceEvents)
    tables = (columns.work, columns.runtime, columns.operators, columns.frames)
    return sum(column.nbytes for table in tables for column in table.taken().values())


def with_orjson(path: Path) -> int:
    import orjson

    return fill(orjson.loads(unpacked(path))["traceEvents"])


def with_pysimdjson(path: Path) -> int:
    import simdjson

    return fill(simdjson.Parser().parse(unpacked(path)).as_dict()["traceEvents"])


def with_json(path: Path) -> int:
    return fill(json.loads(unpacked(path))["traceEvents"])


def with_tracelens(path: Path) -> int:
    """TraceLens's own tree of the trace, without any report."""
    from TraceLens import TreePerfAnalyzer

    return len(TreePerfAnalyzer.from_file(profile_filepath=str(path)).tree.events)


def with_hta(path: Path) -> int:
    """Holistic Trace Analysis: one trace as a DataFrame."""
    from hta.common.trace import parse_trace_file

    return len(parse_trace_file(str(path))[1])


READERS = {
    "rpl": (with_rpl, "rpl_torch"),
    "rpl, whole trace": (with_rpl_whole, "rpl_torch"),
    "msgspec": (with_msgspec, "msgspec"),
    "orjson": (with_orjson, "orjson"),
    "pysimdjson": (with_pysimdjson, "simdjson"),
    "json": (with_json, "json"),
    "TraceLens": (with_tracelens, "TraceLens"),
    "HTA": (with_hta, "hta"),
}
OTHERS = ("TraceLens", "HTA")
PEERS = ("msgspec", "orjson", "pysimdjson")


def measured(reader: str, path: Path, repeats: int) -> tuple[float, int]:
    """Best CPU seconds, and the highest memory of this process in MiB."""
    read = READERS[reader][0]
    best = float("inf")
    for _ in range(repeats):
        begin = time.process_time()
        read(path)
        best = min(best, time.process_time() - begin)
    return best, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def enlarged(path: Path, target: Path, size: int) -> None:
    """The trace with its events repeated, later each time, until the text is ``size`` bytes long."""
    document = json.loads(unpacked(path))
    events = document.pop("traceEvents")
    span = max(e["ts"] + e.get("dur", 0.0) for e in events) - min(e["ts"] for e in events) + 1000.0
    head = json.dumps(document)[:-1] + ', "traceEvents": ['
    written, copy = 0, 0
    with gzip.open(target, "wb", compresslevel=1) as file:
        file.write(head.encode())
        while written < size:
            parts = []
            for event in events:
                changed = {**event, "ts": round(event["ts"] + copy * span, 3)}
                args = event.get("args")
                if isinstance(args, dict):
                    ids = ("External id", "correlation")
                    changed["args"] = {k: v + copy * 10**7 if k in ids else v for k, v in args.items()}
                parts.append(json.dumps(changed))
            text = ((", " if copy else "") + ", ".join(parts)).encode()
            file.write(text)
            written, copy = written + len(text), copy + 1
        file.write(b"]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--large", type=int, default=0, metavar="BYTES")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--others", metavar="PYTHON", help="the interpreter that TraceLens and HTA are in")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measured(options.only, options.trace, options.repeats)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = options.trace
        if options.large:
            path = Path(folder) / "large.json.gz"
            enlarged(options.trace, path, options.large)
        found = {}
        for reader, (_, module) in READERS.items():
            foreign = options.others is not None and reader in OTHERS
            if not foreign and importlib.util.find_spec(module) is None:
                print(f"{reader:18} not installed")
                continue
            words = [options.others if foreign else sys.executable, __file__, str(path), "--only", reader]
            words += ["--repeats", "1" if options.large else str(options.repeats)]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                last = (done.stderr.strip().splitlines() or [f"killed, {done.returncode}"])[-1]
                print(f"{reader:18} failed: {last[:80]}")
                continue
            found[reader] = seconds, memory = json.loads(done.stdout.splitlines()[-1])
            print(f"{reader:18} {seconds:8.3f} CPU-s {memory:6} MiB")
        peers = [found[peer][0] for peer in PEERS if peer in found]
        if peers and "rpl" in found:
            print(f"rpl / fastest peer: {found['rpl'][0] / min(peers):.2f}")


if __name__ == "__main__":
    main()
