"""Hardware counters by Nsight Compute: its command line, and the table that it writes.

``ncu`` runs each kernel again until every counter was read, with caches emptied before each time; times of
such a run say nothing about the application. Columns are those of ncu 2025.3 with ``--csv``: a row per kernel
and metric (Nsight Compute CLI, "Console Output").
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import numpy as np

from rpl_core.errors import BadDataError
from rpl_core.files import read_regular
from rpl_core.interfaces.reader import InputSet, Reader
from rpl_core.model.metric import Origin
from rpl_core.model.trace import (
    Agent,
    CounterValues,
    Dispatches,
    Kernel,
    LaunchShapes,
    Process,
    Trace,
    TraceRole,
    TraceSource,
)

SUFFIX = ".ncu.csv"
_FORMAT = "Nsight Compute table"
_HEAD = '"ID","Process ID","Process Name","Host Name","Kernel Name"'
_MOST_BYTES, _MOST_HEAD = 1 << 30, 1 << 16
_TIME = "gpu__time_duration"
_NUMBERS = re.compile(r"\d+")


def ncu_words(counters: Sequence[str], table: str) -> tuple[str, ...]:
    """The words before the application; ``table`` is the file that gets the counters."""
    metrics = ",".join(f"{name}.sum" for name in (*counters, _TIME))
    fixed = ("--csv", "--print-units", "base", "--print-kernel-base", "mangled", "--clock-control", "none")
    return ("ncu", *fixed, "--metrics", metrics, "--log-file", table)


class NcuReader(Reader):
    """Reads a table of counters per kernel: a counter pass, whose times are not those of the program."""

    name = "nsight-compute"
    summary = "tables of NVIDIA Nsight Compute (ncu --csv): counters per kernel"
    priority = 20

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        return [InputSet(self.name, _FORMAT, (path,)) for path in files if _is_table(path)]

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        return (read_table(inputs.paths[0], self.name),)


def _is_table(path: Path) -> bool:
    if path.suffix != ".csv":
        return False
    try:
        with path.open("rb") as stream:
            return _HEAD.encode() in stream.read(_MOST_HEAD)
    except OSError:
        return False


def read_table(path: Path, reader: str) -> Trace:
    """Raises ``BadDataError`` for a table without kernels, and for what is no number."""
    text = read_regular(path, _MOST_BYTES).decode("utf-8", "replace")
    begin = text.find(_HEAD)
    rows = list(csv.DictReader(StringIO(text[max(begin, 0) :])))
    try:
        return _trace(rows, path, reader)
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise BadDataError(
            f"{path.name} can't be read as a table of Nsight Compute: {error!r:.200}",
            next_step="record again with --roofline",
        ) from error


def _trace(rows: Sequence[dict[str, str]], path: Path, reader: str) -> Trace:
    launches: dict[tuple[int, int], dict[str, str]] = {}
    values: list[tuple[int, str, float]] = []
    durations: dict[int, int] = {}
    places: dict[tuple[int, int], int] = {}
    for row in rows:
        if not _NUMBERS.fullmatch(row.get("ID") or ""):
            continue  # what the application itself printed
        key = (int(row["Process ID"]), int(row["ID"]))
        launches.setdefault(key, row)
        place = places.setdefault(key, len(places))
        name, value = row["Metric Name"].removesuffix(".sum"), float(row["Metric Value"].replace(",", ""))
        if name == _TIME:
            durations[place] = int(value)
        else:
            values.append((place, name, value))
    if not launches:
        raise BadDataError(f"{path.name} holds no kernel", next_step="see the log of the pass")
    node = next(iter(launches.values()))["Host Name"]
    pids = sorted({pid for pid, _ in launches})
    process = np.array([pids.index(pid) for pid, _ in launches], np.int32)
    symbols = [row["Kernel Name"] for row in launches.values()]
    kernels = sorted({(symbol, int(at)) for symbol, at in zip(symbols, process, strict=True)})
    shown = _demangled([symbol for symbol, _ in kernels])
    sizes = [(_sizes(row["Block Size"]), _sizes(row["Grid Size"])) for row in launches.values()]
    table = np.array([[*block, *(g * b for g, b in zip(grid, block, strict=True))] for block, grid in sizes])
    distinct, shape = np.unique(table, axis=0, return_inverse=True)
    unknown = np.full(len(distinct), -1, np.int64)
    names = sorted({name for _, name, _ in values})
    devices = sorted({(int(row["Device"]), row["CC"]) for row in launches.values()})
    nothing = np.full(len(launches), -1, np.int64)
    return Trace(
        source=TraceSource(reader, _FORMAT, (str(path),)),
        role=TraceRole.COUNTERS,
        origin=Origin.MEASURED,
        processes=tuple(Process(path.name, pid, node) for pid in pids),
        agents=tuple(
            Agent(node, index, "GPU", architecture=f"sm_{version.replace('.', '')}")
            for index, version in devices
        ),
        kernels=tuple(Kernel(shown.get(symbol, symbol), symbol=symbol, process=at) for symbol, at in kernels),
        dispatches=Dispatches(
            process=process,
            agent=np.array(
                [devices.index((int(row["Device"]), row["CC"])) for row in launches.values()], np.int32
            ),
            kernel=np.array(
                [kernels.index((s, int(at))) for s, at in zip(symbols, process, strict=True)], np.int32
            ),
            stream=nothing.astype(np.int32),
            queue=nothing.astype(np.int32),
            shape=shape.reshape(-1).astype(np.int32),
            dispatch_id=np.array([number for _, number in launches], np.int64),
            correlation_id=nothing,
            begin_ns=nothing,
            end_ns=nothing,
        ),
        shapes=LaunchShapes(
            distinct[:, 0:3].astype(np.int64), distinct[:, 3:6].astype(np.int64), unknown, unknown
        ),
        counters=CounterValues(
            dispatch=np.array([place for place, _, _ in values], np.int64),
            counter=np.array([names.index(name) for _, name, _ in values], np.int32),
            instance=np.full(len(values), -1, np.int32),
            value=np.array([value for _, _, value in values], np.float64),
            duration_ns=np.array([durations.get(place, -1) for place, _, _ in values], np.int64),
        ),
        counter_names=tuple(names),
    )


def _sizes(text: str) -> tuple[int, int, int]:
    first, second, third = (int(number) for number in _NUMBERS.findall(text))
    return first, second, third


def _demangled(symbols: Sequence[str]) -> dict[str, str]:
    """As the recordings of times show them, where rpl's demangler is installed (with rpl-analysis).

    A name that is left out stays as it is.
    """
    try:
        from rpl_codeobject.demangle import demangled
    except ImportError:
        return {}
    return dict(demangled(sorted(set(symbols))))
