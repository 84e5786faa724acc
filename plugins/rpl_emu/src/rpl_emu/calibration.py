"""Emulated counters beside those that rocprofv3 recorded for the same launch on an MI300X."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rpl_core.errors import BadDataError
from rpl_core.files import parse_json, read_regular
from rpl_core.values import frozen
from rpl_emu.rocpd_file import amd_counters, read_work

#: Counters of one program: thousands of rows of some 200 bytes (chosen).
_MOST_BYTES = 64 << 20
#: Columns of ``*_counter_collection.csv``: one row for each dispatch and counter.
_KERNEL, _DISPATCH, _NAME, _VALUE = (
    "Kernel_Name",
    ("Dispatch_Id", "Dispatch_ID"),
    "Counter_Name",
    "Counter_Value",
)


@frozen
class Compared:
    counter: str
    emulated: int
    recorded: float
    kernel: str = ""

    @property
    def agrees(self) -> bool:
        """Counts are exact: nothing less than the same number agrees."""
        return self.emulated == self.recorded


def compare(launched: Mapping[str, Any], recorded: Mapping[str, float]) -> tuple[Compared, ...]:
    """``launched`` is what ``rpl emu launch --json`` printed. Counters of one side only are left out."""
    emulated = amd_counters(launched)
    return tuple(
        Compared(name, int(emulated[name]["value"]), recorded[name])
        for name in sorted(emulated)
        if name in recorded
    )


def compare_programs(emulated: Path, recorded: Path) -> tuple[Compared, ...]:
    """Each kernel of a program: ``emulated`` is a run of ``rpl profile``, ``recorded`` holds rocprofv3's CSV.

    The counters of all launches of a kernel are added up, on both sides. Kernels and counters of one side
    only are left out; nothing in common raises ``BadDataError``.
    """
    ours, theirs = _emulated_sums(emulated), _recorded_sums(recorded)
    programs = tuple(
        Compared(name, value, theirs[kernel][name], kernel)
        for kernel, counters in sorted(ours.items())
        for name, value in counters.items()
        if name in theirs.get(kernel, {})
    )
    if not programs:
        raise BadDataError(
            f"{emulated} and {recorded} have no counter of a kernel in common",
            cause=f"kernels of the one: {', '.join(sorted(ours))}; of the other: {', '.join(sorted(theirs))}",
        )
    return programs


def _emulated_sums(run: Path) -> dict[str, dict[str, int]]:
    from rpl_emu.collector import LAUNCHES

    log = next(iter(sorted(run.rglob(LAUNCHES))), None)
    if log is None:
        raise BadDataError(
            f"{run}: no run of the emulated device", next_step="rpl profile --device gfx942-emu -- ./app"
        )
    by_kernel: dict[str, dict[str, int]] = {}
    for work in read_work(log).values():
        for launch in work.launches:
            sums = by_kernel.setdefault(str(launch.facts["kernel"]), {})
            for name, counter in amd_counters(launch.facts).items():
                sums[name] = sums.get(name, 0) + int(counter["value"])
    return by_kernel


def _recorded_sums(folder: Path) -> dict[str, dict[str, float]]:
    """A counter that several files have, as repeated runs do, is taken from the first of them."""
    by_kernel: dict[str, dict[str, float]] = {}
    for path in sorted(folder.rglob("*_counter_collection.csv")):
        sums: dict[tuple[str, str], float] = {}
        for row in _rows(path):
            try:
                key = (row[_KERNEL].removesuffix(".kd"), row[_NAME])
                sums[key] = sums.get(key, 0.0) + float(row[_VALUE])
            except (KeyError, TypeError, ValueError) as error:
                raise BadDataError(f"{path}: no CSV of counters", cause=str(error)) from error
        for (kernel, name), value in sums.items():
            by_kernel.setdefault(kernel, {}).setdefault(name, value)
    return by_kernel


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        return list(csv.DictReader(io.StringIO(read_regular(path, _MOST_BYTES).decode(), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadDataError(f"{path}: no CSV of counters", cause=str(error)) from error


def read_launch(path: Path) -> dict[str, Any]:
    document = parse_json(read_regular(path, _MOST_BYTES), path)
    if not isinstance(document, dict) or "classes" not in document:
        raise BadDataError(
            f"{path}: no document of rpl emu launch", next_step="rpl emu launch ... --json > FILE"
        )
    return document


def read_recorded(path: Path, kernel: str) -> dict[str, float]:
    """The counters of the kernel's first dispatch, of rocprofv3's CSV; a counter's instances are added up."""
    rows = [row for row in _rows(path) if kernel in (row.get(_KERNEL) or "")]
    dispatch = next((name for name in _DISPATCH if rows and rows[0].get(name)), None)
    if dispatch is None or _NAME not in rows[0] or _VALUE not in rows[0]:
        raise BadDataError(
            f"{path}: no counters of a kernel {kernel}",
            next_step="rocprofv3 --pmc SQ_WAVES SQ_INSTS_VALU ... --output-format csv -- PROGRAM",
        )
    try:
        return _first_dispatch(rows, dispatch)
    except ValueError as error:
        raise BadDataError(f"{path}: a counter or dispatch that is no number", cause=str(error)) from error


def _first_dispatch(rows: Iterable[Mapping[str, str]], dispatch: str) -> dict[str, float]:
    totals: dict[str, tuple[int, float]] = {}
    for row in rows:
        number, name, value = int(row[dispatch]), row[_NAME], float(row[_VALUE])
        first, total = totals.get(name, (number, 0.0))
        if number < first:
            first, total = number, 0.0
        totals[name] = (first, total + value if number == first else total)
    return {name: total for name, (_, total) in totals.items()}
