"""The figures of docs/validation.md: rpl's come from rpl, the truth from plain csv and sqlite3."""

from __future__ import annotations

import csv
import gzip
import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

PAGE = "docs/validation.md"
ANALYTIC_BYTES = 16_777_216
COUNTER_COLUMNS = (
    "recording",
    "profiler",
    "bytes beyond L2",
    "deviation",
    "bytes L1 to L2",
    "FLOPs",
    "kernel time",
)
#: First words of a row of the table of times -> the recording and how its kernels are summed.
TIMES = {
    "rocpd 3, FlyDSL": "flydsl-gfx1250-v3/146104_results.db",
    "RPD 2, Mixtral rank 0 (vLLM)": "vllm-mi300x-8gpu-rpd/trace_0.rpd.gz",
    "RPD 2, Mixtral rank 1": "vllm-mi300x-8gpu-rpd/trace_1.rpd.gz",
    "RPD 2, raptor": "rpd-raptor-gfx942/mytrace.rpd.gz",
    "RPD 2, matmul": "rpd-matmul-gfx90a/matmul_result.rpd",
    "CSV of ROCm 6.x, HipKittens": "hipkittens-mi325x-csv/66960_kernel_trace.csv",
    "CSV, CSC course": "csc-mi250x-csv/kernel_trace.csv",
    "CSV of ROCm 7.x, llama.cpp": "llama-gfx1151-csv/decode_kernel_trace.csv",
    "CSV of ROCm 7.x, IREE Wave": "wave-mi350x-csv/3785403_kernel_trace.csv.gz",
}
RPD_SUM = """
    SELECT count(*), sum(o."end" - o.start) FROM rocpd_op o JOIN rocpd_string s ON s.id = o.opType_id
    WHERE s.string IN ('KernelExecution', 'Task', 'FillBuffer')
"""
ROCPD_SUM = 'SELECT count(*), sum("end" - start) FROM rocpd_kernel_dispatch'


def _number(cell: str) -> float | None:
    found = re.match(r"[+-]?[\d ]+(?:\.\d+)?", cell)
    return float(found[0].replace(" ", "")) if found else None


@pytest.mark.data
def test_the_counter_table_is_what_rpl_gives(documentation, rpl_shared_data, rpl_cli, tmp_path):
    rows = documentation.rows(PAGE, *COUNTER_COLUMNS)
    assert len(rows) == 6
    for name, _, moved, deviation, to_l2, flops, time in rows:
        folder = rpl_shared_data / "counters_gfx942" / name.strip("`")
        out = tmp_path / folder.name
        rpl_cli("analyze", "--device", "gfx942", folder, "-o", out).assert_ok()
        (kernel,) = json.loads((out / "roofline.json").read_text())["kernels"]
        found = kernel["bytes"]["value"]
        assert round(found) == _number(moved)
        assert f"{found / ANALYTIC_BYTES - 1:+.3%}".replace("%", " %") == deviation
        assert found == pytest.approx(ANALYTIC_BYTES, rel=0.001)
        levels = {level["level"]: level["bytes"]["value"] for level in kernel["levels"]}
        assert round(levels["l2"]) == _number(to_l2)
        assert kernel["flops"]["value"] == _number(flops)
        runtime = json.loads((out / "profile.json").read_text())["runtime_ms"]
        assert round(runtime * 1e6) == _number(time)


@pytest.mark.data
def test_kernel_times_equal_the_timestamps(documentation, rpl_shared_data):
    for row in documentation.rows(PAGE, *COUNTER_COLUMNS)[:5]:
        table = rpl_shared_data / "counters_gfx942" / row[0].strip("`") / "timestamps.csv"
        assert _csv_sum(table)[1] == _number(row[-1])


@pytest.mark.data
def test_the_table_of_times_is_true(documentation, rpl_shared_data, rpl_cli, tmp_path):
    rows = documentation.rows(PAGE, "recording", "device", "dispatches", "sum, ns", "rpl")
    assert {row[0] for row in rows} == set(TIMES)
    for name, _, dispatches, total, _ in rows:
        file = rpl_shared_data / "rocpd" / TIMES[name]
        assert _plain_sum(file, tmp_path) == (int(dispatches), _number(total)), name
        target = file if file.suffix in {".db", ".gz", ".rpd"} and ".csv" not in file.name else file.parent
        profile = rpl_cli("analyze", "--json", target).assert_ok().json()
        assert (profile["launches"], round(profile["runtime_ms"] * 1e6)) == (
            int(dispatches),
            _number(total),
        ), name


def _plain_sum(file: Path, scratch: Path) -> tuple[int, int]:
    if ".csv" in file.name:
        return _csv_sum(file)
    copy = scratch / "recording.db"
    copy.write_bytes(gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes())
    with closing(sqlite3.connect(f"file:{copy}?mode=ro", uri=True)) as connection:
        return connection.execute(RPD_SUM if ".rpd" in file.name else ROCPD_SUM).fetchone()


def _csv_sum(file: Path) -> tuple[int, int]:
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    rows = csv.DictReader(content.decode("utf-8").splitlines())
    spans = [int(row["End_Timestamp"]) - int(row["Start_Timestamp"]) for row in rows]
    return len(spans), sum(spans)


@pytest.mark.data
def test_the_number_of_occupancy_facts_is_stated(documentation, rpl_shared_data):
    facts = json.loads((rpl_shared_data / "occupancy" / "llvm_facts.json").read_text())
    text = " ".join(documentation.page(PAGE).read_text(encoding="utf-8").split())
    assert f"All {len(facts)} facts of the compiler sweep" in text
    assert f"{len(facts)} occupancy facts" in documentation.page("README.md").read_text(encoding="utf-8")
    for architecture, count in Counter(fact["arch"] for fact in facts).items():
        assert f"{count} on {architecture}" in text
