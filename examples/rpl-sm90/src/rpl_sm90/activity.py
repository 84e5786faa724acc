"""A recording that ``native/recorder.cpp`` wrote: the tables of an Nsight export in a file of its own.

The format stands at the top of that source. A file comes from a program that may have died, or from anybody:
each block is looked at before it is used, and what does not fit ends the reading with its place.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np

from rpl_core.errors import BadDataError
from rpl_core.model.diagnostic import Diagnostic
from rpl_sm90.export import Columns

MAGIC = b"RPLCUPT1"
SUFFIX = ".rplcupti"
_TABLE, _ROWS, _STRING, _END = 1, 2, 3, 4
_HEAD = np.dtype([("kind", "<u4"), ("table", "<u4"), ("bytes", "<u8")])
_MOST_TABLES, _MOST_COLUMNS, _LONGEST_TEXT = 64, 64, 4 << 20
_CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"


class ActivityFile:
    """The tables of one process, by the names and columns of Nsight Systems.

    ``complete`` is whether the file was written to its end, ``dropped`` how many records CUPTI says it lost.
    Raises ``BadDataError`` for what is no such file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.complete, self.dropped = False, 0
        self._columns: dict[str, tuple[str, ...]] = {}
        self._strings: dict[int, str] = {}
        self._rows: dict[str, list[np.ndarray[Any, np.dtype[np.int64]]]] = {}
        with path.open("rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                raise self._bad("it does not begin like one", 0)
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        self._read(memoryview(content))
        self.tables = {name for name in self._columns if name in self._rows} | {"StringIds"}

    def _read(self, content: memoryview) -> None:
        numbers: dict[int, str] = {}
        at = len(MAGIC)
        while at + _HEAD.itemsize <= len(content) and not self.complete:
            head = np.frombuffer(content, _HEAD, 1, at)[0]
            begin, size = at + _HEAD.itemsize, int(head["bytes"])
            if begin + size > len(content):
                break  # the program died while this block was written
            block = content[begin : begin + size]
            table = int(head["table"])
            if head["kind"] == _TABLE:
                self._declare(numbers, table, bytes(block[:_LONGEST_TEXT]), at)
            elif head["kind"] == _ROWS:
                self._add(numbers.get(table), block, at)
            elif head["kind"] == _STRING and 8 <= size <= _LONGEST_TEXT:
                text = bytes(block[8:]).decode("utf-8", "backslashreplace")
                self._strings[int.from_bytes(block[:8], "little")] = text
            elif head["kind"] == _END and size == 8:
                self.complete, self.dropped = True, int.from_bytes(block, "little")
            else:
                raise self._bad(f"a block of kind {head['kind']} with {size} bytes", at)
            at = begin + size

    def _declare(self, numbers: dict[int, str], table: int, text: bytes, at: int) -> None:
        name, *columns = text.decode("ascii", "replace").split() or [""]
        if (
            table in numbers
            or name in self._columns
            or not 0 < len(columns) <= _MOST_COLUMNS
            or len(numbers) >= _MOST_TABLES
        ):
            raise self._bad(f"table {table} is declared twice, or has no columns", at)
        numbers[table], self._columns[name] = name, tuple(columns)

    def _add(self, name: str | None, block: memoryview, at: int) -> None:
        columns = self._columns.get(name or "", ())
        if name is None or len(block) % (8 * len(columns)):
            raise self._bad("rows that fit no table", at)
        self._rows.setdefault(name, []).append(np.frombuffer(block, "<i8").reshape(-1, len(columns)))

    def _bad(self, what: str, at: int) -> BadDataError:
        return BadDataError(
            f"{self.path} can't be read as a recording of CUPTI: {what} (byte {at})",
            cause="it is damaged, or no such file",
            next_step="record again with --collector cupti",
        )

    def rows(self, table: str, *names: str) -> list[tuple[Any, ...]]:
        """Rows of ``table``, ``None`` for columns that it lacks; texts where it holds strings."""
        if table == "StringIds":
            known: dict[str, Any] = {"id": int, "value": str}
            assert tuple(names) == tuple(known)
            return list(self._strings.items())
        if table not in self.tables:
            return []
        declared = self._columns[table]
        plain = [column.rstrip("*") for column in declared]
        found: list[list[Any]] = []
        content = np.concatenate(self._rows[table])
        for name in names:
            if name not in plain:
                found.append([None] * len(content))
                continue
            place = plain.index(name)
            values = content[:, place].tolist()
            texts = declared[place].endswith("*")
            found.append([self._strings.get(value) for value in values] if texts else values)
        return list(zip(*found, strict=True))

    def integers(self, table: str, *names: str) -> Columns:
        """Columns of numbers, -1 where nothing is recorded."""
        parts = self._rows.get(table)
        if parts is None:
            return {name: np.empty(0, np.int64) for name in names}
        content = np.concatenate(parts)
        if table == _CALLS:
            content = self._outermost(content)
        declared = self._columns[table]
        return {
            name: content[:, declared.index(name)]
            if name in declared
            else np.full(len(content), -1, np.int64)
            for name in names
        }

    def _outermost(self, calls: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """One row per correlation id: the call of the runtime that holds the driver's."""
        declared = self._columns[_CALLS]
        if "start" not in declared or "correlationId" not in declared:
            raise self._bad("calls without times", 0)
        by_begin = calls[np.argsort(calls[:, declared.index("start")], kind="stable")]
        _, first = np.unique(by_begin[:, declared.index("correlationId")], return_index=True)
        return by_begin[np.sort(first)]

    def diagnostics(self) -> list[Diagnostic]:
        """What the recording lost."""
        found = []
        if not self.complete:
            found.append(
                Diagnostic(
                    "cupti.unfinished",
                    f"{self.path.name} was not written to its end: the last work of this process is missing",
                    cause="the process was killed, left by _exit, or its disk was full",
                )
            )
        if self.dropped:
            found.append(
                Diagnostic("cupti.dropped", f"CUPTI lost {self.dropped} records", count=self.dropped)
            )
        return found
