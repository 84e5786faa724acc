"""Real recordings through the whole command line, against sums that sqlite3 and csv give by themselves."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sqlite3
from collections import Counter
from pathlib import Path

import attrs
import jsonschema
import pytest

pytestmark = pytest.mark.data


@attrs.frozen
class Sums:
    """What is in a recording: dispatches, their summed time and the time of each kernel name."""

    launches: int
    total_ns: int
    by_kernel: Counter[str]


def text_of(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


def of_csv(path: Path) -> Sums:
    by_kernel: Counter[str] = Counter()
    launches = 0
    for row in csv.DictReader(io.StringIO(text_of(path))):
        by_kernel[row["Kernel_Name"]] += int(row["End_Timestamp"]) - int(row["Start_Timestamp"])
        launches += 1
    return Sums(launches, by_kernel.total(), by_kernel)


def of_sqlite(path: Path, query: str, folder: Path) -> Sums:
    raw = path.read_bytes()
    copy = folder / "copy.db"
    copy.write_bytes(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    rows = sqlite3.connect(copy).execute(query).fetchall()
    by_kernel: Counter[str] = Counter()
    for name, duration in rows:
        by_kernel[name] += duration
    return Sums(len(rows), by_kernel.total(), by_kernel)


ROCPD = (
    "SELECT s.display_name, d.end - d.start FROM rocpd_kernel_dispatch d "
    "JOIN rocpd_info_kernel_symbol s ON s.id = d.kernel_id AND s.guid = d.guid"
)
#: Everything that is no copy occupies the compute units; memory fills carry no name.
RPD = (
    "SELECT CASE d.string WHEN '' THEN t.string ELSE d.string END, o.end - o.start FROM rocpd_op o "
    "JOIN rocpd_string t ON t.id = o.opType_id JOIN rocpd_string d ON d.id = o.description_id "
    "WHERE t.string NOT LIKE 'Copy%'"
)

CSV_SETS = {
    "csc-mi250x-csv": "kernel_trace.csv",
    "hipkittens-mi325x-csv": "66960_kernel_trace.csv",
    "wave-mi350x-csv": "3785403_kernel_trace.csv.gz",
    "llama-gfx1151-csv": "decode_kernel_trace.csv",
}
DATABASES = {
    "flydsl-gfx1250-v3": (("146104_results.db",), ROCPD),
    "synthetic-gfx942": (("trace_results.db",), ROCPD),
    "rpd-matmul-gfx90a": (("matmul_result.rpd",), RPD),
    "rpd-raptor-gfx942": (("mytrace.rpd.gz",), RPD),
    "vllm-mi300x-8gpu-rpd": (("trace_0.rpd.gz", "trace_1.rpd.gz"), RPD),
}


@pytest.fixture
def expected(rpl_shared_data, tmp_path):
    """``expected("set")``: the sums of a set, by plain csv or sqlite3."""

    def compute(name: str) -> Sums:
        folder = rpl_shared_data / "rocpd" / name
        if name in CSV_SETS:
            return of_csv(folder / CSV_SETS[name])
        files, query = DATABASES[name]
        parts = [of_sqlite(folder / file, query, tmp_path) for file in files]
        merged = sum((part.by_kernel for part in parts), Counter())
        return Sums(sum(p.launches for p in parts), sum(p.total_ns for p in parts), merged)

    return compute


@pytest.mark.parametrize("name", [*CSV_SETS, *DATABASES])
def test_runtime_launches_and_kernels_are_those_of_the_file(name, expected, rpl_shared_data, rpl_cli):
    truth = expected(name)
    document = rpl_cli("analyze", "--json", rpl_shared_data / "rocpd" / name).assert_ok().json()
    assert document["runtime_ms"] == pytest.approx(truth.total_ns / 1e6, rel=1e-12)
    assert document["runtime_exactness"] == "exact"
    assert document["launches"] == truth.launches
    assert document["stability"]["runs"] == 1
    assert document["stability"]["cv"] is None
    assert len(document["kernels"]) == len(truth.by_kernel)
    found = {kernel["name"]: kernel["runtime_ms"] for kernel in document["kernels"]}
    if name in CSV_SETS or name.startswith(("synthetic", "flydsl")):
        assert found == pytest.approx({kernel: ns / 1e6 for kernel, ns in truth.by_kernel.items()})
    else:  # the names of RPD files are demangled or shortened: compare times only
        assert sorted(found.values()) == pytest.approx(sorted(ns / 1e6 for ns in truth.by_kernel.values()))


@pytest.mark.parametrize("name", [*CSV_SETS, *DATABASES])
def test_critical_path_lies_between_the_longest_dispatch_and_the_makespan(
    name, rpl_shared_data, rpl_cli, tmp_path
):
    rpl_cli("analyze", rpl_shared_data / "rocpd" / name, "-o", tmp_path / "out").assert_ok()
    dag = json.loads((tmp_path / "out" / "dag.json").read_text())
    profile = json.loads((tmp_path / "out" / "profile.json").read_text())
    assert dag["status"] == "available"
    assert max(kernel["max_ns"] for kernel in profile["kernels"]) <= dag["critical_path_ns"]
    assert dag["critical_path_ns"] <= dag["makespan_ns"]
    assert sum(symbol["on_path_ns"] for symbol in dag["symbols"]) == dag["critical_path_ns"]


@pytest.mark.parametrize("name", [*CSV_SETS, *DATABASES, "hipkittens-mi350x-pmc-csv"])
def test_documents_follow_their_schemas(name, rpl_shared_data, rpl_cli, tmp_path):
    # By name, since one folder holds two programs; ``expected.json`` is ours, no recording.
    files = sorted(
        set((rpl_shared_data / "rocpd" / name).glob("*.*"))
        - {rpl_shared_data / "rocpd" / name / "expected.json"}
    )
    rpl_cli("analyze", *files, "-o", tmp_path / "out").assert_ok()
    for path in (tmp_path / "out").iterdir():
        jsonschema.validate(json.loads(path.read_text()), rpl_cli("schema", path.stem).json())


def test_recognised_devices(rpl_shared_data, rpl_cli):
    found = {}
    for name in ("hipkittens-mi325x-csv", "synthetic-gfx942", "wave-mi350x-csv", "flydsl-gfx1250-v3"):
        gpu = rpl_cli("analyze", "--json", rpl_shared_data / "rocpd" / name).assert_ok().json()["gpu"]
        found[name] = gpu["product"] or gpu["reason"]
    assert found["hipkittens-mi325x-csv"] == "AMD Instinct MI325X"
    assert found["synthetic-gfx942"] == "AMD Instinct MI325X"
    assert "gfx950" in found["wave-mi350x-csv"]
    assert "gfx1250" in found["flydsl-gfx1250-v3"]


def test_agent_file_names_the_device_of_the_whole_folder(rpl_shared_data, rpl_cli):
    folder = rpl_shared_data / "rocpd" / "hipkittens-mi350x-pmc-csv"
    outcome = rpl_cli("analyze", "--device", "gfx942", *folder.glob("*.csv")).assert_exit(65)
    assert "made on gfx950" in outcome.stderr


def test_times_of_counter_passes_are_estimates_and_null_when_strict(rpl_shared_data, rpl_cli):
    folder = rpl_shared_data / "rocpd" / "hipkittens-mi350x-pmc-csv"
    refused = rpl_cli("analyze", "--json", folder).assert_exit(65)
    assert "they share 1 of 30 and 3 kernels" in refused.stderr
    files = tuple(sorted(folder.glob("*.csv")))
    document = rpl_cli("analyze", "--json", *files).assert_ok().json()
    assert document["runtime_exactness"] == "estimate"
    low, high = document["runtime_range_ms"]
    assert low <= document["runtime_ms"] <= high
    assert document["critical_path"]["critical_path_ns"] is None
    strict = rpl_cli("analyze", "--json", "--strict", *files).assert_ok().json()
    assert strict["runtime_ms"] is None
    assert "strict" in strict["runtime_reason"]
    assert "unknown" in rpl_cli("analyze", "--quiet", "--strict", *files).assert_exit(65).stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rocprofv1_kern_results.db", "rocprof v1"),
        ("rocprof_compute_23ed6f36.db.gz", "analysis database of rocprofiler-compute"),
        ("partial_schema3_test_rocm_database.db", "rocpd schema 3 but lacks"),
    ],
)
def test_foreign_files_are_recognised_and_refused(name, words, rpl_shared_data, rpl_cli):
    outcome = rpl_cli("analyze", rpl_shared_data / "rocpd" / "reject-cases" / name).assert_exit(65)
    assert words in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert outcome.stdout == ""


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"SQLite format 3\0", b"not a database\n"])
def test_files_that_are_nothing_are_refused(content, tmp_path, rpl_cli):
    (tmp_path / "x_results.db").write_bytes(content)
    outcome = rpl_cli("analyze", tmp_path / "x_results.db").assert_exit(65)
    assert outcome.stderr.count("\n") == 1


def test_truncated_database_is_refused(rpl_shared_data, tmp_path, rpl_cli):
    whole = (rpl_shared_data / "rocpd/flydsl-gfx1250-v3/146104_results.db").read_bytes()
    for share in (0.1, 0.5, 0.9):
        (tmp_path / "x_results.db").write_bytes(whole[: int(len(whole) * share)])
        assert rpl_cli("analyze", tmp_path / "x_results.db").assert_exit(65).stderr.count("\n") == 1


def test_ranks_are_processes_of_one_run_or_runs_on_request(rpl_shared_data, rpl_cli):
    folder = rpl_shared_data / "rocpd" / "vllm-mi300x-8gpu-rpd"
    files = sorted(folder.glob("*.gz"))
    together = rpl_cli("analyze", "--json", *files).assert_ok().json()
    assert together["runtime_ms"] == rpl_cli("analyze", "--json", folder).json()["runtime_ms"]
    apart = rpl_cli("analyze", "--json", "--each-is-a-run", *files).assert_ok().json()
    assert apart["stability"]["runs"] == 2
    assert apart["runtime_ms"] * 2 == pytest.approx(together["runtime_ms"])
    assert apart["launches"] * 2 == together["launches"]
