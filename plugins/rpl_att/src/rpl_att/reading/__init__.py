"""A decoded trace folder: which files it holds, the only way to open one of them, and its table of code.

File names inside trace files are data from elsewhere. A name that is not a plain regular file of this very
folder is refused, so that nothing outside of it is ever opened.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rpl_core import files
from rpl_core.errors import BadDataError
from rpl_core.values import frozen

#: JSON tables are read whole up to this size; the largest public one has 0.38 MB of code rows
#: (docs/reference/thread-trace.md, 5).
MAX_TABLE_BYTES = 32 << 20
#: A compressed file may unpack to this many times its size, and to 64 MiB in any case.
_MAX_EXPANSION = 100
_EXPANSION_FLOOR_BYTES = 64 << 20
_COPY_BYTES = 1 << 20

_FOLDER_NAME = re.compile(r"ui_output_agent_(?P<agent>\d+)_dispatch_(?P<dispatch>\d+)\Z")


@frozen
class TraceFolder:
    """One decoded folder. ``agent_handle`` and ``dispatch_id`` are those in its name, if there."""

    path: Path
    agent_handle: int | None = None
    dispatch_id: int | None = None

    @classmethod
    def at(cls, path: Path) -> TraceFolder:
        match = _FOLDER_NAME.match(path.resolve().name)
        if match is None:
            return cls(path)
        return cls(path, int(match["agent"]), int(match["dispatch"]))

    def find(self, name: str) -> Path | None:
        """The file called ``name`` (or ``name.gz``), or ``None``. Raises ``BadDataError`` for a trick."""
        if name != Path(name).name or name in ("", ".", "..") or "\0" in name or "\\" in name:
            raise BadDataError(
                f"{self.path} names a file outside of itself: {name[:200]!r}",
                cause="the trace is damaged, or was made to mislead",
                next_step="decode the trace again",
            )
        for candidate in (self.path / name, self.path / f"{name}.gz"):
            if _is_regular(candidate):
                return candidate
        return None

    def names(self, pattern: str) -> tuple[str, ...]:
        """Names of regular files (without ``.gz``) that ``pattern`` matches as a whole, sorted."""
        compiled = re.compile(pattern)
        plain = {entry.name.removesuffix(".gz") for entry in self.path.iterdir()}
        return tuple(sorted(n for n in plain if compiled.fullmatch(n) and self.find(n) is not None))

    def table(self, name: str) -> Any:
        """The JSON value in file ``name``, or ``None`` when there is no such file."""
        path = self.find(name)
        if path is None:
            return None
        with open_bounded(path) as stream:
            data = stream.read(MAX_TABLE_BYTES + 1)
        if len(data) > MAX_TABLE_BYTES:
            raise BadDataError(f"{path} is larger than {MAX_TABLE_BYTES >> 20} MiB and is not read")
        return parse_json(data, path)


def parse_json(data: bytes, path: Path) -> Any:
    """``data`` as JSON; every failure names the file."""
    try:
        return files.parse_json(data, path)
    except BadDataError as error:
        error.cause = "the decoder was stopped, or the copy is incomplete"
        error.next_step = "decode or copy the trace again"
        raise


def open_bounded(path: Path) -> IO[bytes]:
    """A binary stream; a ``.gz`` file is unpacked on the way, as far as real traces go."""
    if path.suffix != ".gz":
        return path.open("rb")
    limit = max(path.stat().st_size * _MAX_EXPANSION, _EXPANSION_FLOOR_BYTES)
    if _unpacked_bytes(path, limit) > limit:
        raise BadDataError(f"{path} unpacks to more than {limit >> 20} MiB: no trace file does")
    return gzip.open(path, "rb")  # type: ignore[return-value]  # a binary stream in all but its class


def _unpacked_bytes(path: Path, limit: int) -> int:
    """Size of the unpacked file, counted until ``limit`` is passed. Raises ``BadDataError`` if damaged."""
    total = 0
    try:
        with gzip.open(path, "rb") as stream:
            while total <= limit and (block := stream.read(_COPY_BYTES)):
                total += len(block)
    except (OSError, EOFError, zlib.error) as error:
        raise BadDataError(f"{path} can't be unpacked: {error}") from None
    return total


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


# Checks of single values in JSON from elsewhere: a wrong type is refused with its place.

_LIMIT = 1 << 62


def whole(value: Any, path: Path, place: str) -> int:
    """``value`` as an integer that fits into 63 bits."""
    if isinstance(value, bool) or not isinstance(value, int) or not -_LIMIT < value < _LIMIT:
        raise BadDataError(f"{path}: {place} is no integer of 63 bits: {str(value)[:60]!r}")
    return value


def text(value: Any, path: Path, place: str) -> str:
    """``value`` as text; JSON null is the empty text, which traces use for 'none'."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadDataError(f"{path}: {place} is no text: {str(value)[:60]!r}")
    return value


def mapping(value: Any, path: Path, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadDataError(f"{path}: {place} is no object: {type(value).__name__}")
    return value


def rows(value: Any, path: Path, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadDataError(f"{path}: {place} is no array: {type(value).__name__}")
    return value


# ``snapshots.json``: which source files were copied into the folder, by the path that ISA rows name.

_MAX_SOURCE_BYTES = 16 << 20
_MAX_DEPTH = 64
_LONGEST_LINE = 400
#: Separates the frames of an inline chain, innermost first (docs/reference/thread-trace.md, 2.3).
INLINE = " -> "


def source_names(folder: TraceFolder) -> dict[str, str]:
    """Path of a source file when it was compiled -> name of its copy in the folder."""
    return dict(_leaves(folder.table("snapshots.json") or {}, "", 0, folder))


def _leaves(tree: Any, prefix: str, depth: int, folder: TraceFolder) -> Iterator[tuple[str, str]]:
    if depth > _MAX_DEPTH or not isinstance(tree, dict):
        raise BadDataError(f"{folder.path / 'snapshots.json'} is no tree of at most {_MAX_DEPTH} folders")
    for name, value in sorted(tree.items()):
        path = "/" if name == "/" and not prefix else f"{prefix}{'' if prefix in ('', '/') else '/'}{name}"
        if isinstance(value, str):
            yield path, value
        else:
            yield from _leaves(value, path, depth + 1, folder)


def read_source(folder: TraceFolder, names: dict[str, str], path: str) -> list[str] | None:
    """Lines of the copy of ``path``, or ``None`` when no copy was kept."""
    name = names.get(path)
    copy = folder.find(name) if name is not None else None
    if copy is None or copy.stat().st_size > _MAX_SOURCE_BYTES:
        return None
    return copy.read_text(encoding="utf-8", errors="replace").splitlines()


def source_texts(folder: TraceFolder, named: Iterable[str]) -> dict[str, str]:
    """The text of every line that ``named`` entries ("path:line", or a chain of them) point at.

    Lines of files without a copy are left out, and each is cut at some length: a report shows them.
    """
    copies = source_names(folder)
    if not copies:
        return {}
    wanted: dict[str, set[int]] = {}
    for entry in dict.fromkeys(named):
        path, number = place_of(entry.partition(INLINE)[0].strip())
        if number is not None and path in copies:
            wanted.setdefault(path, set()).add(number)
    texts: dict[str, str] = {}
    for path, numbers in sorted(wanted.items()):
        lines = read_source(folder, copies, path) or []
        texts |= {f"{path}:{n}": lines[n - 1].strip()[:_LONGEST_LINE] for n in numbers if 0 < n <= len(lines)}
    return texts


def place_of(source: str) -> tuple[str, int | None]:
    """ "path:line" in its parts; without a number there is no line."""
    path, _, number = source.rpartition(":")
    return (path, int(number)) if number.isdecimal() and len(number) < 10 else (source, None)


# Raw ``.att`` files and what their names say: agent handle, dispatch id and shader engine.


_NAME = re.compile(r"(?P<process>(?:.*_)?)(?P<agent>\d+)_shader_engine_(?P<se>\d+)_(?P<dispatch>\d+)\.att")
#: rocprofv2 names the kernel and the shader engine only.
_ROCPROFV2_NAME = re.compile(r".+_se\d+\.att")
_MAX_LISTED = 20_000
_MOST_TABLE_BYTES = 1 << 20
_ARCHITECTURE = re.compile(r"gfx[0-9a-f]{3,6}")


def is_raw_file(name: str) -> bool:
    plain = name.removesuffix(".gz")
    return (_NAME.fullmatch(plain) or _ROCPROFV2_NAME.fullmatch(plain)) is not None


def raw_files_of(folder: TraceFolder) -> tuple[Path, ...]:
    """Files of the folder's dispatch beside it, or one directory below (``%hostname%/%pid%``), sorted."""
    if folder.dispatch_id is None:
        return ()
    parent = folder.path.resolve().parent
    wanted = (folder.agent_handle, folder.dispatch_id)
    return tuple(path for path in files_beside(parent) if raw_identity(path.name) == wanted)


def files_beside(parent: Path) -> tuple[Path, ...]:
    """Regular files in ``parent`` and one level below, decoded folders excepted; links are not followed."""
    paths: list[Path] = []
    for entry in _listed(parent):
        if entry.is_file():
            paths.append(entry)
        elif entry.is_dir() and "ui_output" not in entry.name:
            paths += [below for below in _listed(entry) if below.is_file()]
    return tuple(sorted(paths))


def files_in(folder: Path) -> tuple[Path, ...]:
    """Regular files right in ``folder``, sorted; links are not followed."""
    return tuple(entry for entry in _listed(folder) if entry.is_file())


def _listed(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())[:_MAX_LISTED]
    except OSError:
        return []
    return [entry for entry in entries if not entry.is_symlink()]


def raw_identity(name: str) -> tuple[int, int] | None:
    """Agent handle and dispatch id in the name of a raw trace."""
    match = _NAME.fullmatch(name.removesuffix(".gz"))
    return None if match is None else (int(match["agent"]), int(match["dispatch"]))


def shader_engine(name: str) -> int:
    """The shader engine in the name of a raw trace of rocprofv3. Raises ``ValueError`` for another name."""
    return int(_parts(name)["se"])


def process_prefix(name: str) -> str:
    """What all files of the recording process begin with. Raises ``ValueError`` as ``shader_engine``."""
    return _parts(name)["process"]


def agents_beside(raw: Path) -> Path | None:
    """Where the table of agents of a raw trace's process lies, if there is one."""
    match = _NAME.fullmatch(raw.name.removesuffix(".gz"))
    return None if match is None else raw.with_name(f"{match['process']}agent_info.csv")


def recorded_architecture(raw_files: Sequence[Path]) -> str | None:
    """The GPU's name, such as "gfx950", in the table of agents that rocprofv3 writes beside raw traces.

    ``None`` without a table, and where it names GPUs of several architectures.
    """
    names: set[str] = set()
    for raw in raw_files:
        table = agents_beside(raw)
        if table is not None and table in _listed(raw.parent) and table.stat().st_size <= _MOST_TABLE_BYTES:
            rows = csv.DictReader(table.read_text(encoding="utf-8", errors="replace").splitlines())
            names |= {str(row.get("Name")) for row in rows if row.get("Agent_Type") == "GPU"}
            break  # files of one dispatch are files of one process
    named = names.pop() if len(names) == 1 else ""
    return named if _ARCHITECTURE.fullmatch(named) else None


def _parts(name: str) -> re.Match[str]:
    match = _NAME.fullmatch(name.removesuffix(".gz"))
    if match is None:
        raise ValueError(f"{name!r} is no raw trace of rocprofv3")
    return match


# ``code.json`` and ``stats_*.csv``: the static instructions with their counts, in every layout met.
#
# Layouts are told apart by header and row length, never by the version, which stayed "3.0.0" throughout
# (docs/reference/thread-trace.md, 2.3 and 2.4). A column that a layout lacks is ``None``, not zero.

Counts = NDArray[np.int64]

#: Columns of every rocprofv3 layout; the first eight are always there.
_CURRENT = ("isa", "_", "linenumber", "source", "codeobj", "vaddr", "hit", "latency", "stall", "idle")
#: Of rocprofv2: text, category, to_line, source, index, address index, hit, cycles
#: (docs/reference/thread-trace.md, 2.3).
_ROCPROFV2 = ("isa", "_", "linenumber", "source", "codeobj", "vaddr", "hit", "latency")
#: The same in rocprofv2 of early 2024: the third column is the target of a branch, the fifth the key.
_ROCPROFV2_2024 = ("isa", "_", "to_line", "source", "linenumber", "vaddr", "hit", "latency")
_LABEL = "; "
#: Statistics inside an early decoded folder; later ones lie beside it (docs/reference/thread-trace.md, 2.4).
_EARLY_STATS = "att_output.csv"


@frozen(eq=False)
class CodeTable:
    """Rows in order of ``line``, the row id that waves refer to (not a line of source).

    ``stall`` and ``idle`` are ``None`` where the layout has no such column.
    """

    layout: str  # "rocprofv3", "rocprofv3 early 2025" or "rocprofv2"
    columns: int
    isa: tuple[str, ...]
    line: Counts
    source: tuple[str, ...]
    code_object: Counts
    vaddr: Counts
    hit: Counts
    latency: Counts
    stall: Counts | None
    idle: Counts | None

    def __len__(self) -> int:
        return len(self.isa)

    @property
    def labels(self) -> tuple[int, ...]:
        """Rows that name a kernel and are no instruction."""
        return tuple(i for i, isa in enumerate(self.isa) if isa.startswith(_LABEL))

    @property
    def has_addresses(self) -> bool:
        return self.layout != "rocprofv2"


def parse_code(table: Any, path: Path) -> CodeTable | None:
    """The rows of ``code.json``; ``None`` for the empty trace (``"code": null``)."""
    document = mapping(table, path, "the document")
    if document.get("code") is None:
        return None
    code = rows(document["code"], path, "code")
    if not code:
        return None
    old = "top_n" in document or ("version" not in document and "header" not in document)
    names = _rocprofv2_columns(code, path) if old else _header(document.get("header"), code[0], path)
    return _table(code, names, "rocprofv2" if old else _layout_of(names), path)


def _rocprofv2_columns(code: Sequence[Any], path: Path) -> tuple[str, ...]:
    """The layout whose key tells all instructions apart; waves name instructions by it."""
    for names in (_ROCPROFV2, _ROCPROFV2_2024):
        place = names.index("linenumber")
        keys = [row[place] for row in code if isinstance(row, list) and len(row) > place and _is_code(row)]
        if all(isinstance(key, int) for key in keys) and len(set(keys)) == len(keys):
            return names
    raise BadDataError(
        f"{path} has no column that tells its instructions apart: an unknown layout",
        next_step="decode the trace again with rocprofv3",
    )


def _is_code(row: Sequence[Any]) -> bool:
    return not (isinstance(row[0], str) and row[0].startswith(_LABEL))


def _layout_of(names: Sequence[str]) -> str:
    return "rocprofv3" if "stall" in names else "rocprofv3 early 2025"


def _header(header: Any, first: Any, path: Path) -> tuple[str, ...]:
    """Lower-case column names; without a header those of the known layout of that length."""
    if header is None:
        length = len(rows(first, path, "code[0]"))
        if length not in (8, 10):
            raise BadDataError(f"{path} has no header and rows of {length} columns: an unknown layout")
        return _CURRENT[:length]
    parts = header.split(",") if isinstance(header, str) else rows(header, path, "header")
    return tuple(text(part, path, "header").strip().lower() for part in parts)


def _table(code: Sequence[Any], names: Sequence[str], layout: str, path: Path) -> CodeTable:
    place = {name: index for index, name in enumerate(names)}
    optional = ("_", "codeobj")
    lacking = [name for name in _CURRENT[:8] if name not in place and name not in optional]
    if lacking:
        raise BadDataError(f"{path} has no column {lacking[0]!r}", next_step="decode the trace again")
    width = max(place[name] for name in _CURRENT if name in place) + 1
    for number, row in enumerate(code):
        if not isinstance(row, list) or len(row) < width:
            raise BadDataError(f"{path}: code[{number}] has not the {width} columns of the header")
    columns = {name: [row[index] for row in code] for name, index in place.items() if name in _CURRENT}
    columns.setdefault("codeobj", [0] * len(code))
    order = np.argsort(_integers(columns["linenumber"], path, "LineNumber"), kind="stable")

    def counts(name: str) -> Counts:
        return _integers(columns[name], path, name)[order]

    return CodeTable(
        layout=layout,
        columns=len(names),
        isa=tuple(text(columns["isa"][i], path, "ISA") for i in order),
        line=counts("linenumber"),
        source=tuple(text(columns["source"][i], path, "Source") for i in order),
        code_object=counts("codeobj"),
        vaddr=counts("vaddr"),
        hit=counts("hit"),
        latency=counts("latency"),
        stall=counts("stall") if "stall" in columns else None,
        idle=counts("idle") if "idle" in columns else None,
    )


def _integers(values: Sequence[Any], path: Path, place: str) -> Counts:
    return np.array([whole(value, path, place) for value in values], dtype=np.int64)


def stats_path(folder: TraceFolder) -> Path | None:
    """The CSV that belongs to ``folder``: inside of it, or beside it under its own name."""
    inside = folder.find(_EARLY_STATS)
    if inside is not None:
        return inside
    resolved = folder.path.resolve()
    return TraceFolder(resolved.parent).find(f"stats_{resolved.name}.csv")


def read_stats(path: Path) -> CodeTable | None:
    """The table; ``None`` for a file that holds only a header (an empty trace)."""
    with open_bounded(path) as stream:
        data = stream.read(MAX_TABLE_BYTES + 1)
    if len(data) > MAX_TABLE_BYTES:
        raise BadDataError(f"{path} is larger than {MAX_TABLE_BYTES >> 20} MiB")
    try:
        records = list(csv.DictReader(io.StringIO(data.decode("utf-8")), skipinitialspace=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadDataError(f"{path} is no CSV table: {error}") from None
    return _parse_stats(records, path)


def _parse_stats(records: Sequence[Mapping[str, str]], path: Path) -> CodeTable | None:
    """The rows of ``stats_*.csv``, columns by name; ``None`` when it has a header only."""
    if not records:
        return None
    named = [
        {k.strip().strip('"').lower(): (v or "").strip() for k, v in row.items() if isinstance(k, str)}
        for row in records
    ]
    lacking = [name for name in ("vaddr", "instruction", "hitcount", "latency") if name not in named[0]]
    if lacking:
        raise BadDataError(f"{path} has no column {lacking[0]!r}")

    def counts(name: str) -> Counts | None:
        if name not in named[0]:
            return None
        return np.array([_number(row.get(name, ""), path, name) for row in named], dtype=np.int64)

    zeros = np.zeros(len(named), np.int64)
    stall, code_object = counts("stall"), counts("codeobj")
    hit, latency, vaddr = counts("hitcount"), counts("latency"), counts("vaddr")
    assert hit is not None
    assert latency is not None
    assert vaddr is not None
    return CodeTable(
        layout="rocprofv3" if stall is not None else "rocprofv3 early 2025",
        columns=len(named[0]),
        isa=tuple(row["instruction"] for row in named),
        line=np.arange(len(named), dtype=np.int64),
        source=tuple(row.get("source", "") for row in named),
        code_object=zeros if code_object is None else code_object,
        vaddr=vaddr,
        hit=hit,
        latency=latency,
        stall=stall,
        idle=counts("idle"),
    )


def _number(value: str, path: Path, place: str) -> int:
    try:
        return whole(int(value), path, place)
    except ValueError:
        raise BadDataError(f"{path}: {place} is no integer: {value[:60]!r}") from None
