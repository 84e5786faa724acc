"""The reader of RPD databases (schema 2), written by rocmProfileData and tools that share its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import ForeignFileError
from rpl_core.interfaces.reader import Reader
from rpl_core.model.recording import merge_traces
from rpl_rocprofv3.database import open_database
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

__all__ = ["RpdReader"]


class RpdReader(Reader):
    """Reads ``.rpd`` and ``.rpd.gz``; one file is one rank."""

    name = "rpd"
    summary = "RPD databases of rocmProfileData (schema 2), plain or gzip"
    priority = 10

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        return claim_databases(self.name, files, frozenset({DatabaseKind.RPD}), _describe)

    def stands_alone(self, path: Path) -> bool:
        return looks_like_database(path)

    def parts(self, inputs: InputSet) -> tuple[InputSet, ...]:
        return tuple(attrs.evolve(inputs, paths=(path,)) for path in inputs.paths)

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        if inputs.refusal:
            raise ForeignFileError(f"{inputs.paths[0]}: {inputs.refusal}", next_step=inputs.next_step)
        return (merge_traces([_read_file(path, self.name) for path in inputs.paths]),)


def _describe(database: Database) -> RecordedFile:
    """The first and last operation in file order stand for the lifetime; RPD names no machine."""
    from rpl_rocprofv3.readers.rpd.trace import RPD_NODE

    query = "SELECT start, end FROM rocpd_op WHERE id = (SELECT {}(id) FROM rocpd_op)"
    edges = [database.connection.execute(query.format(which)).fetchone() for which in ("min", "max")]
    times = [time for edge in edges if edge for time in edge if isinstance(time, int)]
    begin, end = (min(times), max(times)) if times else (None, None)
    pid = database.connection.execute("SELECT pid FROM rocpd_api LIMIT 1").fetchone()
    pids = frozenset({pid[0]} if pid and isinstance(pid[0], int) else ())
    return RecordedFile(database.path, RPD_NODE, None, begin, end, pids=pids)


def _read_file(path: Path, reader: str) -> Trace:
    with open_database(path) as database:
        identity = identify(database.connection)
        if identity.refusal or identity.kind is not DatabaseKind.RPD:
            raise ForeignFileError(
                f"{path}: {identity.refusal or identity.format}", next_step=identity.next_step
            )
        # Imported where a file is read: databases of rocprofv3 are the rule.
        from rpl_rocprofv3.readers.rpd.trace import read_rpd

        return read_rpd(database, reader, identity.format)
