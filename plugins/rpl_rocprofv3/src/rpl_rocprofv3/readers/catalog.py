"""The readers of this plugin: which files each claims, and in which order they are read.

What knows the contents of CSV, JSON, RPD and workload tables is imported where such a file is offered: most
recordings are rocpd databases.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import BadDataError, ForeignFileError
from rpl_core.interfaces.reader import InputSet, Reader
from rpl_core.model.recording import merge_traces
from rpl_core.values import frozen
from rpl_rocprofv3.database import open_database
from rpl_rocprofv3.readers.claims import (
    DatabaseKind,
    RecordedFile,
    claim_databases,
    execution_groups,
    identify,
    looks_like_database,
)
from rpl_rocprofv3.readers.json import is_results_json
from rpl_rocprofv3.readers.rocpd import read_part
from rpl_rocprofv3.readers.rocpd.info import parts_of, read_processes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from typing import NoReturn

    from rpl_core.model.trace import Trace
    from rpl_rocprofv3.database import Database
    from rpl_rocprofv3.readers.csv import CsvSet


# rocpd databases (schema 3), the output of rocprofv3 since ROCm 7.0. Their reader also speaks for every
# database that no other one knows.
_ROCPD_KINDS = frozenset({DatabaseKind.ROCPD, DatabaseKind.FOREIGN})


class RocpdReader(Reader):
    """Reads rocpd 3.0.0 to 3.0.5, and names every other SQLite database that it is given."""

    name = "rocpd"
    summary = "rocpd databases of rocprofv3 (schema 3.0.0 to 3.0.5), one or several processes"
    priority = 10

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        return claim_databases(self.name, files, _ROCPD_KINDS, _rocpd_lifetimes)

    def stands_alone(self, path: Path) -> bool:
        return looks_like_database(path)

    def parts(self, inputs: InputSet) -> tuple[InputSet, ...]:
        return tuple(attrs.evolve(inputs, paths=(path,)) for path in inputs.paths)

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        if inputs.refusal:
            raise ForeignFileError(f"{inputs.paths[0]}: {inputs.refusal}", next_step=inputs.next_step)
        traces: list[Trace] = []
        for path in inputs.paths:
            traces.extend(_read_rocpd(path, self.name))
        return (merge_traces(traces),)


def _rocpd_lifetimes(database: Database) -> RecordedFile:
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


def _read_rocpd(path: Path, reader: str) -> list[Trace]:
    with open_database(path) as database:
        identity = identify(database.connection)
        if identity.refusal or identity.kind is not DatabaseKind.ROCPD:
            raise ForeignFileError(
                f"{path}: {identity.refusal or identity.format}", next_step=identity.next_step
            )
        parts = parts_of(database.connection)
        if not parts:
            raise BadDataError(f"{path}: no process is recorded", next_step="record again")
        traces = [read_part(database, part, reader, identity.format) for part in parts]
        return [_hashed(trace, database) for trace in traces]


def _hashed(trace: Trace, database: Database) -> Trace:
    if database.passing is None:
        return trace
    return attrs.evolve(trace, source=attrs.evolve(trace.source, sha256=(database.passing.finished(),)))


# RPD databases (schema 2), written by rocmProfileData and tools that share its tables.


class RpdReader(Reader):
    """Reads ``.rpd`` and ``.rpd.gz``; one file is one rank."""

    name = "rpd"
    summary = "RPD databases of rocmProfileData (schema 2), plain or gzip"
    priority = 10

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        return claim_databases(self.name, files, frozenset({DatabaseKind.RPD}), _rpd_lifetimes)

    def stands_alone(self, path: Path) -> bool:
        return looks_like_database(path)

    def parts(self, inputs: InputSet) -> tuple[InputSet, ...]:
        return tuple(attrs.evolve(inputs, paths=(path,)) for path in inputs.paths)

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        if inputs.refusal:
            raise ForeignFileError(f"{inputs.paths[0]}: {inputs.refusal}", next_step=inputs.next_step)
        return (merge_traces([_read_rpd(path, self.name) for path in inputs.paths]),)


def _rpd_lifetimes(database: Database) -> RecordedFile:
    """The first and last operation in file order stand for the lifetime; RPD names no machine."""
    from rpl_rocprofv3.readers.rpd import RPD_NODE

    query = "SELECT start, end FROM rocpd_op WHERE id = (SELECT {}(id) FROM rocpd_op)"
    edges = [database.connection.execute(query.format(which)).fetchone() for which in ("min", "max")]
    times = [time for edge in edges if edge for time in edge if isinstance(time, int)]
    begin, end = (min(times), max(times)) if times else (None, None)
    pid = database.connection.execute("SELECT pid FROM rocpd_api LIMIT 1").fetchone()
    pids = frozenset({pid[0]} if pid and isinstance(pid[0], int) else ())
    return RecordedFile(database.path, RPD_NODE, None, begin, end, pids=pids)


def _read_rpd(path: Path, reader: str) -> Trace:
    with open_database(path) as database:
        identity = identify(database.connection)
        if identity.refusal or identity.kind is not DatabaseKind.RPD:
            raise ForeignFileError(
                f"{path}: {identity.refusal or identity.format}", next_step=identity.next_step
            )
        # Imported where a file is read: databases of rocprofv3 are the rule.
        from rpl_rocprofv3.readers.rpd import read_rpd

        return _hashed(read_rpd(database, reader, identity.format), database)


# CSV sets of rocprofv3, the output of ROCm 6.x and an option of 7.x.

_RECORD_TIMES = "record with `rocprofv3 --kernel-trace`"
# Columns of all CSV tables of rocprof v1; with filters that match nothing there are no others.
_OLD_PROFILER = frozenset({"index", "kernelname"})


class CsvReader(Reader):
    """Reads ``<prefix>_kernel_trace.csv`` and its companions; one prefix is one process."""

    name = "rocprofv3-csv"
    summary = "CSV sets of rocprofv3 (ROCm 6.x and 7.x), plain or gzip"
    priority = 5

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        files = [path for path in files if path.name.endswith((".csv", ".csv.gz"))]
        if not files:
            return ()
        from rpl_rocprofv3.readers.csv import csv_sets

        recorded_sets = self._sets(csv_sets(files))
        return (*recorded_sets, *(self._foreign(path) for path in sorted(files) if _is_of_old_profiler(path)))

    def _sets(self, sets: Sequence[CsvSet]) -> Sequence[InputSet]:
        from rpl_rocprofv3.readers.csv import CSV_FORMAT, described

        refusals = {each: each.refusal() for each in sets}
        recorded = {each: described(each) for each in sets if refusals[each] is None}
        owner = {file.path: each for each, file in recorded.items()}
        readable = [
            InputSet(
                self.name, CSV_FORMAT, tuple(path for file in group for path in owner[file.path].paths())
            )
            for group in execution_groups(list(recorded.values()))
        ]
        refused = [
            InputSet(self.name, CSV_FORMAT, each.paths(), refusal, _RECORD_TIMES)
            for each, refusal in refusals.items()
            if refusal
        ]
        return (*readable, *refused)

    def _foreign(self, path: Path) -> InputSet:
        refusal = "it is a table of rocprof v1 or v2, or Omniperf 1.x, without times or counters"
        return InputSet(self.name, "rocprof v1/v2 CSV", (path,), refusal, _RECORD_TIMES)

    def parts(self, inputs: InputSet) -> tuple[InputSet, ...]:
        from rpl_rocprofv3.readers.csv import csv_sets

        return tuple(attrs.evolve(inputs, paths=each.paths()) for each in csv_sets(inputs.paths))

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        if inputs.refusal:
            raise ForeignFileError(f"{inputs.paths[0]}: {inputs.refusal}", next_step=inputs.next_step)
        from rpl_rocprofv3.readers.csv import csv_sets, read_csv_set

        return (merge_traces([read_csv_set(each, self.name) for each in csv_sets(inputs.paths)]),)


def _is_of_old_profiler(path: Path) -> bool:
    if not path.name.endswith(".csv"):
        return False
    from rpl_rocprofv3.readers.csv.tables import csv_header
    from rpl_rocprofv3.readers.workload import table_form

    header = csv_header(path)
    return {name.lower() for name in header} >= _OLD_PROFILER and table_form(header) is None


# Workload folders of rocprofiler-compute (``pmc_perf.csv`` and what lies beside it).

_MAIN = "pmc_perf.csv"
_SYSTEM = "sysinfo.csv"
#: What a run of rocprofiler-compute merged into ``pmc_perf.csv``: read again, it would be another run.
_MERGED = re.compile(r"pmc_perf_\d+\.csv(\.gz)?")
#: The folder in a workload folder that holds what its profiler wrote, pass by pass.
_PASSES = "out"
# Written beside the tables and made of them; they hold no recording of their own.
_COMPANIONS = ("pmc_dispatch_info.csv", "roofline.csv")


class ComputeWorkloadReader(Reader):
    """Reads each table of a folder as a trace: timestamps as timing, the others as counter passes."""

    name = "rocprof-compute"
    summary = "workload folders of rocprofiler-compute and Omniperf, results.csv of rocprof v1 and v2"
    priority = 5

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        tables = sorted(path for path in files if path.name.endswith((".csv", ".csv.gz")))
        if not tables:
            return ()
        from rpl_rocprofv3.readers.csv.tables import csv_header
        from rpl_rocprofv3.readers.workload import table_form

        folders: dict[Path, list[Path]] = {}
        for path in tables:
            if table_form(csv_header(path)) is not None:
                folders.setdefault(path.parent, []).append(path)
        merged = [folder for folder, tables in folders.items() if _has_main(tables)]
        for path in tables:
            owner = next((folder for folder in merged if folder / _PASSES in path.parents), None)
            if owner is not None:
                folders.pop(path.parent, None)
                folders[owner].append(path)
        return tuple(s for folder in sorted(folders) for s in self._sets(folder, folders[folder], set(files)))

    def _sets(self, folder: Path, tables: list[Path], files: set[Path]) -> Iterable[InputSet]:
        from rpl_rocprofv3.readers.workload import WORKLOAD_FORMAT

        if not _has_main(tables):
            return [InputSet(self.name, WORKLOAD_FORMAT, (path,)) for path in tables]
        beside = [folder / name for name in (_SYSTEM, *_COMPANIONS)]
        return [InputSet(self.name, WORKLOAD_FORMAT, (*tables, *(path for path in beside if path in files)))]

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        if inputs.refusal:
            raise ForeignFileError(f"{inputs.paths[0]}: {inputs.refusal}", next_step=inputs.next_step)
        from rpl_rocprofv3.readers.csv.tables import csv_header
        from rpl_rocprofv3.readers.trace import with_flat_geometry
        from rpl_rocprofv3.readers.workload import (
            BENCHMARK,
            TableForm,
            read_benchmark,
            read_system,
            read_workload_table,
            table_form,
        )

        merged = _has_main(inputs.paths)
        read = [
            path for path in inputs.paths if not merged or not _is_merged_pass(path, inputs.paths[0].parent)
        ]
        forms = {path: table_form(csv_header(path)) for path in read}
        order = (TableForm.TIMES, TableForm.WIDE, TableForm.LONG)
        tables = [path for form in order for path in read if forms[path] is form]
        system = read_system(inputs.paths[0].parent / _SYSTEM)
        first, *others = (read_workload_table(path, system, self.name) for path in tables)
        benchmark = next((path for path in inputs.paths if path.name == BENCHMARK), None)
        measured = {"ceilings": read_benchmark(benchmark)} if benchmark is not None else {}
        return tuple(
            attrs.evolve(trace, extras={**trace.extras, **measured})
            for trace in (with_flat_geometry(first), *others)
        )


def _has_main(tables: Iterable[Path]) -> bool:
    return any(path.name.startswith(_MAIN) for path in tables)


def _is_merged_pass(path: Path, folder: Path) -> bool:
    """Whether ``path`` is a pass whose counters are in the merged table of ``folder`` too."""
    return _MERGED.fullmatch(path.name) is not None or folder / _PASSES in path.parents


# ``*_results.json`` files, an output format of rocprofv3.

_JSON_FORMAT = "rocprofv3 JSON"
_EMPTY_FILE = "the file is empty (0 bytes)"


class JsonReader(Reader):
    """Streams JSON of any size; one file is one process."""

    name = "rocprofv3-json"
    summary = "JSON results of rocprofv3, streamed, plain or gzip, one or several processes"
    priority = 5

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        recorded = [_json_lifetime(path) for path in sorted(files) if is_results_json(path)]
        groups = execution_groups(recorded)
        sets = [InputSet(self.name, _JSON_FORMAT, tuple(file.path for file in group)) for group in groups]
        empty = [
            InputSet(self.name, _JSON_FORMAT, (path,), _EMPTY_FILE, "record again")
            for path in sorted(files)
            if path.name.endswith("_results.json") and path.is_file() and path.stat().st_size == 0
        ]
        return (*sets, *empty)

    def stands_alone(self, path: Path) -> bool:
        return is_results_json(path)

    def parts(self, inputs: InputSet) -> tuple[InputSet, ...]:
        return tuple(attrs.evolve(inputs, paths=(path,)) for path in inputs.paths)

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        # The parser is imported only when a file is read.
        from rpl_rocprofv3.readers.json.trace import read_results_json

        if inputs.refusal:
            raise ForeignFileError(f"{inputs.paths[0]}: {inputs.refusal}", next_step=inputs.next_step)
        return (merge_traces([read_results_json(path, self.name) for path in inputs.paths]),)


def _json_lifetime(path: Path) -> RecordedFile:
    """Process and lifetime from the first section of the file; unknown where that can't be read."""
    from rpl_rocprofv3.readers.json.trace import JSON_NODE, first_process

    try:
        process = first_process(path)
    except BadDataError:
        return RecordedFile(path, JSON_NODE, None, None, None)
    return RecordedFile(
        path, JSON_NODE, None, process.begin_ns, process.end_ns, pids=frozenset({process.pid})
    )


# Files of other profilers and viewers: named and refused with what to do, so that nobody has to guess.
#
# Databases are told apart by ``claims.identify``, tables by the readers of CSV. Sources of the signs:
# docs/reference/formats.md, 7.

_HEAD_BYTES = 1 << 16
_RECORD = "record the program with `rpl profile -- COMMAND`, or with `rocprofv3 --kernel-trace`"
_ON_ROCM = "record on the AMD GPU with `rpl profile -- COMMAND`; a torch.profiler trace is read too"


@frozen
class _Format:
    name: str
    refusal: str
    next_step: str = _RECORD


_PERFETTO = _Format(
    "Perfetto trace",
    "it is a Perfetto trace, which is made for a viewer and lacks what an analysis needs",
    "give rpl the recording that it was made from, or record with `rocprofv3 --kernel-trace"
    " --output-format rocpd`",
)
_XPLANE = _Format("JAX profile", "it is a profile of JAX or TensorFlow (XPlane), which rpl does not read")
_BY_SUFFIX = {
    **dict.fromkeys((".pftrace", ".perfetto-trace", ".perfetto"), _PERFETTO),
    **dict.fromkeys(
        (".nsys-rep", ".qdrep", ".qdstrm"),
        _Format("Nsight Systems report", "it is a report of NVIDIA's Nsight Systems", _ON_ROCM),
    ),
    **dict.fromkeys(
        (".ncu-rep", ".nsight-cuprof-report"),
        _Format("Nsight Compute report", "it is a report of NVIDIA's Nsight Compute", _ON_ROCM),
    ),
    ".xplane.pb": _XPLANE,
}
_ROCPROF_JSON = _Format(
    "rocprof v1 JSON",
    "it is a JSON trace of rocprof v1 or v2, which is made for a viewer",
    "give rpl the results.csv beside it, or record with rocprofv3",
)
_JAX_JSON = _Format("JAX trace", "it is a trace of JAX or TensorFlow for a viewer, which rpl does not read")
_CHROME = _Format("Chrome trace", "it is a Chrome trace of another tool than torch.profiler")


class ForeignReader(Reader):
    """Refuses formats that it knows and nobody reads."""

    name = "foreign"
    summary = "names files of other profilers and viewers, and says what to do instead"
    priority = -100  # whoever can read a file comes first

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        formats = ((path, _format_of(path)) for path in sorted(files))
        return [
            InputSet(self.name, known.name, (path,), known.refusal, known.next_step)
            for path, known in formats
            if known is not None
        ]

    def read(self, inputs: InputSet) -> NoReturn:
        raise ForeignFileError(f"{inputs.paths[0]}: {inputs.refusal}", next_step=inputs.next_step)


def _format_of(path: Path) -> _Format | None:
    name = path.name.lower()
    plain = name.removesuffix(".gz")
    for suffix, known in _BY_SUFFIX.items():
        if plain.endswith(suffix):
            return known
    if not plain.endswith(".json"):
        return None
    head = b"".join(_head(path).split())
    if not head.startswith((b"{", b"[")):
        return None
    if b'"schemaVersion"' in head or b'"deviceProperties"' in head:
        return None  # torch.profiler: read by a reader of its own, where that is installed
    if head.startswith(b'{"traceEvents":[{}') and (b"API" in head or b'"BeginNs"' in head):
        return _ROCPROF_JSON
    if b'"highres-ticks"' in head:
        return _JAX_JSON
    return _CHROME if b'"traceEvents"' in head or (b'"ph":"' in head and b'"ts":' in head) else None


def _head(path: Path) -> bytes:
    """The first bytes, unpacked; nothing of a file that can't be read."""
    from rpl_rocprofv3.readers.gzip_limits import unpacked_head

    try:
        if path.suffix.lower() == ".gz":
            return unpacked_head(path, _HEAD_BYTES)
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except (OSError, EOFError, zlib.error, BadDataError):
        return b""


def all_readers() -> tuple[Reader, ...]:
    """Every reader."""
    return (ComputeWorkloadReader(), RocpdReader(), CsvReader(), JsonReader(), RpdReader(), ForeignReader())
