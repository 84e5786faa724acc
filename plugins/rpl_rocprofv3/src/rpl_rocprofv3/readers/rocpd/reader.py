"""The reader of rocpd databases (schema 3), the output of rocprofv3 since ROCm 7.0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import BadDataError, ForeignFileError
from rpl_core.interfaces.reader import Reader
from rpl_core.model.recording import merge_traces
from rpl_rocprofv3.database import open_database
from rpl_rocprofv3.readers.rocpd.info import parts_of, read_processes
from rpl_rocprofv3.readers.rocpd.trace import read_part
from rpl_rocprofv3.readers.run_groups import RecordedFile
from rpl_rocprofv3.readers.sqlite.claims import (
    DatabaseKind,
    claim_databases,
    identify,
    looks_like_database,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rpl_core.interfaces.reader import InputSet
    from rpl_core.model.trace import Trace
    from rpl_rocprofv3.database import Database

__all__ = ["RocpdReader"]


# This reader also speaks for every database that no other one knows.
_KINDS = frozenset({DatabaseKind.ROCPD, DatabaseKind.FOREIGN})


class RocpdReader(Reader):
    """Reads rocpd 3.0.0 to 3.0.5, and names every other SQLite database that it is given."""

    name = "rocpd"
    summary = "rocpd databases of rocprofv3 (schema 3.0.0 to 3.0.5), one or several processes"
    priority = 10

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        return claim_databases(self.name, files, _KINDS, _describe)

    def stands_alone(self, path: Path) -> bool:
        return looks_like_database(path)

    def parts(self, inputs: InputSet) -> tuple[InputSet, ...]:
        return tuple(attrs.evolve(inputs, paths=(path,)) for path in inputs.paths)

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        if inputs.refusal:
            raise ForeignFileError(f"{inputs.paths[0]}: {inputs.refusal}", next_step=inputs.next_step)
        traces: list[Trace] = []
        for path in inputs.paths:
            traces.extend(_read_file(path, self.name))
        return (merge_traces(traces),)


def _describe(database: Database) -> RecordedFile:
    parts = parts_of(database.connection)
    processes = [process for part in parts for process in read_processes(part).values]
    begins = [p.begin_ns for p in processes if p.begin_ns is not None]
    ends = [p.end_ns for p in processes if p.end_ns is not None]
    known = bool(processes) and len(begins) == len(ends) == len(processes)
    return RecordedFile(
        path=database.path,
        node=processes[0].node if processes else "",
        hostname=processes[0].hostname if processes else None,
        begin_ns=min(begins) if known else None,
        end_ns=max(ends) if known else None,
        guids=frozenset(part.guid for part in parts),
        pids=frozenset(process.pid for process in processes),
    )


def _read_file(path: Path, reader: str) -> list[Trace]:
    with open_database(path) as database:
        identity = identify(database.connection)
        if identity.refusal or identity.kind is not DatabaseKind.ROCPD:
            raise ForeignFileError(
                f"{path}: {identity.refusal or identity.format}", next_step=identity.next_step
            )
        parts = parts_of(database.connection)
        if not parts:
            raise BadDataError(f"{path}: no process is recorded", next_step="record again")
        return [read_part(database, part, reader, identity.format) for part in parts]
