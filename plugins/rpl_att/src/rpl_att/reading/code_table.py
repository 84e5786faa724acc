"""``code.json`` and ``stats_*.csv``: the static instructions with their counts, in every layout met.

Layouts are told apart by header and row length, never by the version, which stayed "3.0.0" throughout
(reference: docs/reference/thread-trace.md, 2.3 and 2.4). A column that a layout lacks is ``None``, not zero.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rpl_att.reading.folder import MAX_TABLE_BYTES, TraceFolder, mapping, open_bounded, rows, text, whole
from rpl_core.errors import BadDataError
from rpl_core.values import frozen

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
    named = [{_key(k): (v or "").strip() for k, v in row.items() if isinstance(k, str)} for row in records]
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


def _key(name: str) -> str:
    return name.strip().strip('"').lower()


def _number(value: str, path: Path, place: str) -> int:
    try:
        return whole(int(value), path, place)
    except ValueError:
        raise BadDataError(f"{path}: {place} is no integer: {value[:60]!r}") from None
