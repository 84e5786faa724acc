"""The table of first screens in docs/validation.md: what rpl says, and what plain csv and sqlite3 give."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sqlite3
from collections import Counter
from pathlib import Path

import attrs
import pytest

pytestmark = [pytest.mark.long, pytest.mark.data]

_NS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}
COLUMNS = ("recording", "first screen", "plain csv or SQL")
_OPERATIONS = """
    select t.string, d.string, o.start, o.end from rocpd_op o
    join rocpd_string d on d.id = o.description_id join rocpd_string t on t.id = o.opType_id
"""


@attrs.frozen
class Work:
    """Intervals by what ran: kernels by name, copies by kind."""

    kernels: list[tuple[str, int, int]]
    copies: list[tuple[str, int, int]]

    def fractions(self) -> tuple[float, float, float, float]:
        everything = [*self.kernels, *self.copies]
        makespan = max(end for *_, end in everything) - min(begin for _, begin, _ in everything)
        kernels, busy = _union(self.kernels), _union(everything)
        times: Counter[str] = Counter()
        for name, begin, end in everything:
            times[name] += end - begin
        most = makespan - times.most_common(1)[0][1]
        return kernels / makespan, (busy - kernels) / makespan, 1 - busy / makespan, makespan / most


def _union(intervals) -> int:
    total, reached = 0, 0
    for _, begin, end in sorted(intervals, key=lambda each: each[1:]):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def _of_csv(path: Path) -> Work:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    names, begins, ends = (
        ("Kernel_Name", "KernelName"),
        ("Start_Timestamp", "BeginNs"),
        ("End_Timestamp", "EndNs"),
    )

    def cell(row, columns):
        return next(row[column] for column in columns if column in row)

    return Work([(cell(row, names), int(cell(row, begins)), int(cell(row, ends))) for row in rows], [])


def _of_rpd(path: Path, folder: Path) -> Work:
    if path.suffix == ".gz":
        plain = folder / "plain.rpd"
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        path = plain
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        rows = [row for row in database.execute(_OPERATIONS) if row[3] > row[2]]
    kernels = [(d or t, b, e) for t, d, b, e in rows if t in ("KernelExecution", "Task", "FillBuffer")]
    return Work(kernels, [(t, b, e) for t, _, b, e in rows if "opy" in t])


def _work(place: Path, folder: Path) -> Work:
    if place.is_dir():
        patterns = ("timestamps.csv", "*kernel_trace.csv*", "*.rpd*")
        place = next(found for pattern in patterns for found in sorted(place.glob(pattern)))
    return _of_rpd(place, folder) if ".rpd" in place.name else _of_csv(place)


def _figures(text: str) -> list[float]:
    """Kernels, copies alone and idle in percent, and the largest gain; what is not named is 0."""
    patterns = (r"kernels ([\d.]+) ?%", r"copies alone ([\d.]+) ?%", r"idle ([\d.]+) ?%", r"([\d.]+)x")
    found = [re.search(pattern, text) for pattern in patterns]
    return [float(match[1]) if match else 0.0 for match in found]


def test_first_screens_say_what_plain_arithmetic_gives(documentation, rpl_shared_data, rpl_cli, tmp_path):
    rows = documentation.rows("docs/validation.md", *COLUMNS)
    assert len(rows) >= 10
    for recording, screen, truth in rows:
        place = rpl_shared_data / recording.strip("`")
        work = _work(place, tmp_path)
        *shares, gain = work.fractions()
        assert [*(round(100 * share, 1) for share in shares), round(gain, 3)] == _figures(truth), recording
        text = " ".join(rpl_cli("analyze", place).assert_ok().stdout.split())
        gpu_time = re.search(r"GPU time: (.*?\))", text)[1]
        gained = re.search(r"application would be (at most )?([\d.]+x) as fast", text)
        if gain < 1.005:
            assert "the application would take as long" in text, recording
            assert "would take as long" in screen, recording
            assert _figures(gpu_time)[:3] == _figures(screen)[:3], recording
            assert "1.000x" not in text, recording
        else:
            assert gained, f"{recording}: no sentence says what the application would gain"
            assert _figures(f"{gpu_time} {gained[2]}") == _figures(screen), recording
            assert bool(gained[1]) == ("at most" in screen), recording
        total = sum(end - begin for _, begin, end in work.kernels)
        shown, unit = re.search(r"kernel time ([\d.,]+) ([mun]?s)\b", text).groups()
        assert float(shown.replace(",", "")) * _NS[unit] == pytest.approx(total, rel=6e-4), recording
