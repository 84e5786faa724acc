"""The reader of thread traces: finds decoded folders and raw traces among files, and reads each whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rpl_att.reading import agents_beside, is_raw_file, raw_identity
from rpl_core.interfaces.reader import InputSet, Reader
from rpl_core.model.trace import Dispatches, LaunchShapes, Trace, TraceRole, TraceSource

if TYPE_CHECKING:
    from rpl_att.decoded_trace import ThreadTrace

#: Key of the traces in ``Trace.extras``.
EXTRA = "thread_traces"
_TABLES = ("code.json", "filenames.json", "occupancy.json")
#: Everything that decoders of both generations write into a folder (docs/reference/thread-trace.md, 2.1).
_MEMBER = re.compile(
    r"(?:code|filenames|occupancy|snapshots|realtime|graph_options|live|wstates\d|se\d+_\w+|other_simd_\w+"
    r"|shaderdata_\w+)\.json|att_output\.csv|source_\d+_.*|\w+\.(?:png|html|ico)"
)


class ThreadTraceReader(Reader):
    """Claims the files of decoded folders, the tables beside them and raw traces; one set per dispatch."""

    name = "thread-trace"
    summary = "thread traces of rocprofv3 --att (decoded folders in all layouts) and of rocprofv2"
    priority = 60  # before readers of any JSON or CSV

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        claimed: dict[Path, list[Path]] = {folder: [] for folder in _decoded_folders(files)}
        raw: dict[tuple[Path, str], list[Path]] = {}
        for file in files:
            folder = _folder_of(file, claimed)
            if folder is not None:
                claimed[folder].append(file)
            elif is_raw_file(file.name):
                raw.setdefault((file.parent, "_".join(map(str, raw_identity(file.name) or ()))), []).append(
                    file
                )
        # Tables of agents that are not part of a trace of kernels or counters, by their path.
        kinds = ("kernel_trace.csv", "counter_collection.csv")
        used = {
            file.with_name(f"{_without_gz(file.name).removesuffix(kind)}agent_info.csv")
            for file in files
            for kind in kinds
            if _without_gz(file.name).endswith(kind)
        }
        spare = {file: file for file in files if file.name.endswith("agent_info.csv") and file not in used}
        for members in (*claimed.values(), *raw.values()):  # each table with the first trace of its process
            members += sorted({spare.pop(t) for m in tuple(members) if (t := agents_beside(m)) in spare})
        sets = [_decoded_set(members) for _, members in sorted(claimed.items())]
        sets += [
            InputSet(self.name, "raw thread trace", tuple(members)) for _, members in sorted(raw.items())
        ]
        return sets

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        from rpl_att.decoded_trace import read_decoded_trace
        from rpl_att.decoding.decode import read_raw_trace

        if inputs.format == "raw thread trace":
            paths = tuple(path for path in inputs.paths if is_raw_file(path.name))
            return (_trace(inputs, read_raw_trace(paths), paths),)
        tables = tuple(path for path in inputs.paths if _without_gz(path.name) in _TABLES)
        return (_trace(inputs, read_decoded_trace(tables[0].parent), tables),)


def _decoded_folders(files: Sequence[Path]) -> Sequence[Path]:
    """Folders with a code table and an index of waves, or with one of them and a decoder's name."""
    tables: dict[Path, set[str]] = {}
    for file in files:
        if _without_gz(file.name) in _TABLES[:2] and _looks_like_json(file):
            tables.setdefault(file.parent, set()).add(_without_gz(file.name))
    return [f for f, names in tables.items() if len(names) == 2 or f.name.startswith("ui_output_")]


def _decoded_set(members: Iterable[Path]) -> InputSet:
    return InputSet(ThreadTraceReader.name, "decoded thread trace", tuple(sorted(members)))


def _without_gz(name: str) -> str:
    return name.removesuffix(".gz")


def _folder_of(file: Path, folders: Iterable[Path]) -> Path | None:
    """The decoded folder that ``file`` is in, or whose statistics or raw trace it is."""
    name = _without_gz(file.name)
    if file.parent in folders:
        return file.parent if _MEMBER.fullmatch(name) else None
    if name.startswith("stats_ui_output_") and name.endswith(".csv"):
        beside = file.parent / name.removeprefix("stats_").removesuffix(".csv")
        return beside if beside in folders else None
    identity = raw_identity(name)
    if identity is not None:
        decoded = f"ui_output_agent_{identity[0]}_dispatch_{identity[1]}"
        return next((f for f in (file.parent / decoded, file.parent.parent / decoded) if f in folders), None)
    return None


def _looks_like_json(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            start = stream.read(64).lstrip()
    except OSError:
        return False
    return start.startswith((b"{", b"\x1f\x8b"))


def _trace(inputs: InputSet, trace: ThreadTrace, sources: Sequence[Path]) -> Trace:
    """A trace without dispatches of its own: times are not what a thread trace is for."""
    return Trace(
        source=TraceSource(
            reader=inputs.reader,
            format=_format(trace),
            paths=tuple(str(path) for path in sources),
        ),
        role=TraceRole.THREAD_TRACE,
        origin=trace.origin,
        processes=(),
        agents=(),
        kernels=(),
        dispatches=_no_dispatches(),
        shapes=LaunchShapes(
            np.zeros((0, 3), np.int64),
            np.zeros((0, 3), np.int64),
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
        ),
        extras={EXTRA: (trace,)},
        slows_neighbours=True,
        architecture_prefix=trace.architecture or "",
    )


def _format(trace: ThreadTrace) -> str:
    from rpl_att.decoded_trace import Level

    if trace.level is Level.RAW and trace.code is None and trace.occupancy is None:
        return "thread trace, not decoded"
    layout = trace.code.layout if trace.code else "no code"
    return f"thread trace ({layout}, read from {trace.level.value})"


def _no_dispatches() -> Dispatches:
    index, number = np.zeros(0, np.int32), np.zeros(0, np.int64)
    return Dispatches(index, index, index, index, index, index, number, number, number, number)
