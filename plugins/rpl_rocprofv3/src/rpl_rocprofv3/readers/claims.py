"""Whose a database is, and which files are processes of one execution: same folder, overlapping lifetimes.

Profilers write one file per process. Ranks of one run live at the same time, repeated runs do not, so
lifetimes on one clock tell them apart; so does a process id that occurs twice. Clocks of different nodes
can't be compared: nodes are joined only when each has exactly one group. Files whose lifetime is unknown
stay alone.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_core.interfaces.reader import InputSet
from rpl_core.values import frozen
from rpl_rocprofv3.database import SQLITE_MAGIC, Tables, open_database, quoted
from rpl_rocprofv3.readers.gzip_limits import unpacked_head

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rpl_rocprofv3.database import Database


@frozen
class RecordedFile:
    """When and where the processes of a file lived, and by which guids they are known."""

    path: Path
    node: str
    hostname: str | None
    begin_ns: int | None
    end_ns: int | None
    guids: frozenset[str] = frozenset()
    pids: frozenset[int] = frozenset()

    @property
    def folder(self) -> Path:
        """The folder of the run: the default layout puts a folder per host below it."""
        parent = self.path.parent
        return parent.parent if self.hostname and parent.name == self.hostname else parent


def execution_groups(files: Sequence[RecordedFile]) -> list[list[RecordedFile]]:
    """Files grouped by execution, each group and the groups in order of path."""
    groups: list[list[RecordedFile]] = []
    by_folder: dict[Path, list[RecordedFile]] = {}
    for file in files:
        by_folder.setdefault(file.folder, []).append(file)
    for _, here in sorted(by_folder.items()):
        per_node = [
            _split_by_pid(_overlapping([file for file in here if file.node == node]))
            for node in sorted({file.node for file in here})
        ]
        if all(len(clusters) == 1 for clusters in per_node) and all(_has_lifetime(file) for file in here):
            groups.append([file for clusters in per_node for file in clusters[0]])
        else:
            groups.extend(cluster for clusters in per_node for cluster in clusters)
    return sorted(
        (sorted(group, key=lambda file: file.path) for group in groups), key=lambda group: group[0].path
    )


def _has_lifetime(file: RecordedFile) -> bool:
    return file.begin_ns is not None and file.end_ns is not None


def _overlapping(files: Sequence[RecordedFile]) -> list[list[RecordedFile]]:
    """Clusters of files whose lifetimes are connected by overlaps."""
    clusters: list[list[RecordedFile]] = [[file] for file in files if not _has_lifetime(file)]
    latest = -1
    for file in sorted((f for f in files if _has_lifetime(f)), key=lambda f: (f.begin_ns or 0, f.path)):
        if file.begin_ns is not None and file.begin_ns < latest:
            clusters[-1].append(file)
        else:
            clusters.append([file])
        latest = max(latest, file.end_ns or 0)
    return clusters


def _split_by_pid(clusters: list[list[RecordedFile]]) -> list[list[RecordedFile]]:
    """Two files of one process id are two runs, whatever their times say."""
    groups: list[list[RecordedFile]] = []
    for cluster in clusters:
        pids = [pid for file in cluster for pid in file.pids]
        groups += [cluster] if len(pids) == len(set(pids)) else [[file] for file in cluster]
    return groups


def repeated_files(files: Sequence[RecordedFile]) -> dict[Path, Path]:
    """Files whose processes are all in another file too: copies, and sources of a merged database."""
    owner: dict[str, Path] = {}
    repeated: dict[Path, Path] = {}
    for file in sorted(files, key=lambda f: (-len(f.guids), f.path)):
        if file.guids and file.guids <= owner.keys():
            repeated[file.path] = owner[min(file.guids)]
        for guid in file.guids:
            owner.setdefault(guid, file.path)
    return repeated


# Groups database files into input sets: whose they are, which are refused, which belong together.
#
# Files are opened only to read their catalogue and the table of processes.

# Names under which profilers write databases; other files count only if they begin like one.
_SUFFIXES = (".db", ".rpd", ".sqlite", ".sqlite3")


def claim_databases(
    reader: str,
    files: Sequence[Path],
    kinds: frozenset[DatabaseKind],
    describe: Callable[[Database], RecordedFile],
) -> tuple[InputSet, ...]:
    """The sets of ``files`` whose database is one of ``kinds``. Damaged files count as foreign ones.

    ``describe`` tells the lifetime of a readable file, by which files of one execution are joined.
    """
    refused: list[InputSet] = []
    readable: dict[Path, str] = {}
    recorded: list[RecordedFile] = []
    for path in sorted(path for path in files if looks_like_database(path)):
        answer = _claim(reader, path, kinds, describe)
        if isinstance(answer, InputSet):
            refused.append(answer)
        elif answer is not None:
            readable[path], file = answer
            recorded.append(file)
    repeated = repeated_files(recorded)
    refused += [_repetition(reader, readable[path], path, repeated[path]) for path in repeated]
    groups = execution_groups([file for file in recorded if file.path not in repeated])
    sets = [
        InputSet(
            reader,
            ", ".join(dict.fromkeys(readable[file.path] for file in group)),
            tuple(file.path for file in group),
        )
        for group in groups
    ]
    return tuple(sorted([*sets, *refused], key=lambda claimed: claimed.paths))


def _repetition(reader: str, form: str, path: Path, original: Path) -> InputSet:
    return InputSet(
        reader,
        form,
        (path,),
        f"it repeats the recording in {original.name} (same guid)",
        "give rpl one of the two",
    )


def looks_like_database(path: Path) -> bool:
    """Whether the name or the first bytes speak for SQLite. Never raises."""
    try:
        if not path.is_file() or path.name.endswith(("-wal", "-shm", "-journal")):
            return False
        named = path.name.removesuffix(".gz").endswith(_SUFFIXES)
        if path.suffix == ".gz":
            return named or unpacked_head(path, len(SQLITE_MAGIC)) == SQLITE_MAGIC
        with path.open("rb") as file:
            return named or file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    except OSError:
        return False


def _claim(
    reader: str,
    path: Path,
    kinds: frozenset[DatabaseKind],
    describe: Callable[[Database], RecordedFile],
) -> InputSet | tuple[str, RecordedFile] | None:
    """A refusal, the format with the description of a readable file, or None for other readers' files."""
    try:
        with open_database(path) as database:
            identity = identify(database.connection)
            if identity.kind not in kinds:
                return None
            if identity.refusal:
                return InputSet(reader, identity.format, (path,), identity.refusal, identity.next_step)
            return identity.format, describe(database)
    except BadDataError as error:
        if DatabaseKind.FOREIGN not in kinds:
            return None
        return InputSet(
            reader,
            "damaged or foreign database",
            (path,),
            error.fact.removeprefix(f"{path}: "),
            error.next_step,
        )


# Which profiler wrote an SQLite database, judged by its tables and columns, never by a version alone.
#
# The table of formats follows docs/reference/formats.md, 2.1.

_CONVERT = "record again with rocprofv3 from ROCm 7.0 or newer"
_SUPPORTED_MAJOR = "3"

#: Columns without which a rocpd recording gives no trace. Everything else is optional.
REQUIRED = {
    "rocpd_metadata": ("tag", "value"),
    "rocpd_string": ("id", "string"),
    "rocpd_info_node": ("id",),
    "rocpd_info_process": ("id", "pid", "nid"),
    "rocpd_info_agent": ("id", "type", "name"),
    "rocpd_info_kernel_symbol": ("id", "kernel_name", "display_name"),
    "rocpd_event": ("id", "stack_id"),
    "rocpd_kernel_dispatch": (
        *("pid", "agent_id", "kernel_id", "dispatch_id", "queue_id", "stream_id", "start", "end", "event_id"),
        *(f"{size}_size_{axis}" for size in ("workgroup", "grid") for axis in "xyz"),
    ),
}


class DatabaseKind(str, Enum):
    ROCPD = "rocpd"
    RPD = "RPD"
    FOREIGN = "foreign"


@frozen
class Identity:
    """What a database is. ``refusal`` is set when it can't be read, with what to do in ``next_step``."""

    kind: DatabaseKind
    format: str
    refusal: str | None = None
    next_step: str | None = None


def identify(connection: sqlite3.Connection) -> Identity:
    """Recognise the database. Reads the catalogue and the metadata only."""
    tables = Tables(connection)
    if "KERN" in tables or "OPS" in tables:
        return _foreign("rocprof v1/v2 results", "a results.db of rocprof v1 or v2, not a rocpd recording")
    if any(name.startswith("compute_") for name in tables.names()):
        return _foreign(
            "rocprofiler-compute analysis",
            "an analysis database of rocprofiler-compute, which holds no dispatch times",
            "give rpl the workload folder (pmc_perf.csv, sysinfo.csv) instead",
        )
    if "TARGET_INFO_GPU" in tables or any(name.startswith("CUPTI_ACTIVITY_") for name in tables.names()):
        return _foreign(
            "Nsight Systems export",
            "an export of NVIDIA's Nsight Systems",
            "record on the AMD GPU: `rpl profile -- COMMAND`",
        )
    if tables.is_table("rocpd_op") and tables.is_table("rocpd_api"):
        return _identify_rpd(tables)
    if any(name.startswith("rocpd_") for name in tables.names()):
        return _identify_rocpd(connection, tables)
    return _foreign("unknown SQLite database", "an SQLite database without any profiler's tables")


def _foreign(form: str, refusal: str, next_step: str = _CONVERT) -> Identity:
    return Identity(DatabaseKind.FOREIGN, form, f"it is {refusal}", next_step)


def _identify_rpd(tables: Tables) -> Identity:
    missing = sorted(
        {"rocpd_string", "rocpd_api_ops", "rocpd_kernelapi", "rocpd_copyapi"} - set(tables.names())
    )
    if missing:
        return Identity(
            DatabaseKind.RPD,
            "RPD 2",
            f"it is an RPD database without the tables {', '.join(missing)}",
            "record again with rocmProfileData",
        )
    return Identity(DatabaseKind.RPD, "RPD 2")


def _identify_rocpd(connection: sqlite3.Connection, tables: Tables) -> Identity:
    version = _schema_version(connection, tables)
    dispatch = tables.get("rocpd_kernel_dispatch")
    draft = dispatch is not None and "track_id" in dispatch.columns and "agent_id" not in dispatch.columns
    major = version.partition(".")[0] if version else None
    if draft or (major is not None and major != _SUPPORTED_MAJOR):
        return Identity(
            DatabaseKind.ROCPD,
            f"rocpd {version or '4 draft'}",
            f"it follows rocpd schema {version or '4 (draft)'}, and rpl reads schema 3",
            "record with the rocprofv3 of a ROCm release between 7.0 and 10.0",
        )
    lacking = _lacking(tables)
    if lacking:
        return Identity(
            DatabaseKind.ROCPD,
            f"rocpd {version or '(no version)'} (partial)",
            f"it claims rocpd schema {version or 3} but lacks {lacking}",
            _CONVERT,
        )
    return Identity(DatabaseKind.ROCPD, f"rocpd {_precise_version(version, tables)}")


def _schema_version(connection: sqlite3.Connection, tables: Tables) -> str | None:
    names = [name for name in tables.names() if name.startswith("rocpd_metadata")]
    for name in names:
        row = connection.execute(
            f"SELECT value FROM {quoted(name)} WHERE tag = 'schema_version'"  # noqa: S608
        ).fetchone()
        if row is not None:
            return str(row[0])
    return None


def _lacking(tables: Tables) -> str:
    """The tables and columns that are missing, as a phrase."""
    required = {name: tables.get(name) for name in REQUIRED}
    absent = [name for name, table in required.items() if table is None]
    columns = [
        f"{name}.{column}"
        for name, table in required.items()
        if table is not None
        for column in REQUIRED[name]
        if column not in table.columns
    ]
    parts = []
    if absent:
        parts.append(f"the tables or views {', '.join(absent)}")
    if columns:
        parts.append(f"the columns {', '.join(columns)}")
    return " and ".join(parts)


def _precise_version(version: str | None, tables: Tables) -> str:
    """The schema version by what is there: files of ROCm 7.0 to 7.2 all say just ``3``.

    See docs/reference/formats.md, 2.8.
    """
    if version and "." in version:
        return version
    counters = tables.get("rocpd_pmc_event")
    columns = counters.columns if counters else frozenset[str]()
    signs = (
        ("3.0.5", "shader_array" in columns),
        ("3.0.4", "rocpd_hip_event" in tables),
        ("3.0.3", "sample_id" in columns),
        ("3.0.2", "rocpd_graph_launch" in tables),
    )
    return next((named for named, present in signs if present), "3.0.0")
