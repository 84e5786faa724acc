"""A reader of text files: `kernel begin_ns end_ns stream`, one launch a line; replace it by yours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rpl_core.errors import BadDataError
from rpl_core.interfaces.reader import InputSet, Reader
from rpl_core.model.metric import Origin
from rpl_core.model.trace import (
    NOT_RECORDED,
    Agent,
    Dispatches,
    Kernel,
    LaunchShapes,
    Process,
    Stream,
    Trace,
    TraceRole,
    TraceSource,
)

SUFFIX = ".launches"
#: Chosen: whatever a file claims, it costs no more memory than this.
LARGEST_BYTES = 64 << 20


class LaunchesReader(Reader):
    """One file is one run of one process."""

    name = "{{ cookiecutter.plugin_name }}"
    summary = f"text files with one launch per line (*{SUFFIX})"

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        return [InputSet(self.name, "launches", (path,)) for path in files if path.suffix == SUFFIX]

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        return (_trace(inputs.paths[0], self.name),)


def _rows(path: Path) -> list[tuple[str, int, int, int]]:
    if path.stat().st_size > LARGEST_BYTES:
        raise BadDataError(f"{path} has more than {LARGEST_BYTES} bytes", next_step="record less")
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            name, *numbers = line.decode().split()
            begin, end, stream = map(int, numbers)
        except ValueError as error:
            raise BadDataError(f"{path}, line {number}: no launch", next_step="record again") from error
        if not 0 <= begin <= end < 2**62 or not 0 <= stream < 2**31:
            raise BadDataError(f"{path}, line {number}: impossible numbers", next_step="record again")
        rows.append((name, begin, end, stream))
    if not rows:
        raise BadDataError(f"{path} holds no launch", next_step="record again")
    return sorted(rows, key=lambda row: row[1:3])


def _trace(path: Path, reader: str) -> Trace:
    rows = _rows(path)
    names = list(dict.fromkeys(row[0] for row in rows))
    streams = sorted({row[3] for row in rows})
    no_axes, nothing = np.empty((0, 3), np.int64), np.empty(0, np.int64)
    first, unknown = np.zeros(len(rows), np.int32), np.full(len(rows), NOT_RECORDED, np.int32)
    return Trace(
        source=TraceSource(reader, "launches", (str(path),)),
        role=TraceRole.TIMING,
        origin=Origin.MEASURED,
        processes=(Process(path.name, NOT_RECORDED, node="unknown"),),
        agents=(Agent("unknown", 0, "GPU"),),
        kernels=tuple(Kernel(name, process=0) for name in names),
        streams=tuple(Stream(0, number) for number in streams),
        dispatches=Dispatches(
            process=first,
            agent=first,
            kernel=np.array([names.index(row[0]) for row in rows], np.int32),
            stream=np.array([streams.index(row[3]) for row in rows], np.int32),
            queue=unknown,
            shape=unknown,
            dispatch_id=np.arange(len(rows)),
            correlation_id=np.full(len(rows), NOT_RECORDED),
            begin_ns=np.array([row[1] for row in rows]),
            end_ns=np.array([row[2] for row in rows]),
        ),
        shapes=LaunchShapes(no_axes, no_axes, nothing, nothing),
    )
