"""Counter collection: capacity, missing counters, filters, agreement with the trace."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rpl_testkit.rocprofv3_standin.passes import PASS_LIMITS, kernel_filter, overfull_blocks

#: A legal full SQ and TCC pass of docs/reference/counters.md, 1.1.
FULL_SQ = [f"SQ_INSTS_VALU_{op}_{kind}" for op in ("ADD", "MUL", "FMA", "TRANS") for kind in ("F16", "F32")]


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def test_full_pass_is_collected(profiler, results) -> None:
    full = [*FULL_SQ, "TCC_HIT", "TCC_MISS", "TCC_REQ", "TCC_BUBBLE", "GRBM_COUNT", "GRBM_GUI_ACTIVE"]
    assert profiler("--pmc", *full, "-d", "o", "-o", "x", "--", "true").returncode == 0
    (path,) = results("*.db")
    found = {name for (name,) in query(path, "SELECT DISTINCT counter_name FROM counters_collection")}
    assert found == set(full)


@pytest.mark.parametrize("extra", ["SQ_WAVES", "SQ_WAVES_sum"])
def test_one_counter_too_many_aborts(profiler, results, extra: str) -> None:
    done = profiler("--pmc", *FULL_SQ, extra, "-d", "o", "-o", "x", "--", "true")
    assert done.returncode == -signal.SIGABRT
    assert "Request exceeds the capabilities of the hardware to collect" in done.stderr
    assert not results("*.db")


@pytest.mark.parametrize(
    ("counters", "blocks"),
    [
        (["FETCH_SIZE", "TCC_HIT"], ()),
        (["FETCH_SIZE", "WRITE_SIZE"], ("TCC",)),
        (["TCC_HIT", "TCC_HIT_sum"], ()),
        (["GRBM_COUNT", "GRBM_GUI_ACTIVE"], ()),
    ],
)
def test_derived_counters_need_their_bases(counters: list[str], blocks: tuple[str, ...]) -> None:
    assert overfull_blocks(counters) == blocks


def test_limits_are_those_of_gfx9() -> None:
    assert (PASS_LIMITS["SQ"], PASS_LIMITS["TCC"], PASS_LIMITS["TCP"], PASS_LIMITS["GRBM"]) == (8, 4, 4, 2)


def test_unknown_counter_is_a_warning_and_the_others_are_collected(profiler, results) -> None:
    done = profiler("--pmc", "SQ_WAVES,TCC_EA0_WRREQ_32B", "-d", "o", "-o", "x", "--", "true")
    assert done.returncode == 0
    assert "Unable to find all counters for agent 2 (gpu-0, gfx942)" in done.stderr
    assert "Found: [SQ_WAVES]. Missing: [TCC_EA0_WRREQ_32B]" in done.stderr
    (path,) = results("*.db")
    assert query(path, "SELECT DISTINCT counter_name FROM counters_collection") == [("SQ_WAVES",)]


def test_without_any_known_counter_nothing_is_recorded(profiler, results) -> None:
    assert profiler("--pmc", "NOPE", "-d", "o", "-o", "x", "--", "true").returncode == 0
    (path,) = results("*.db")
    assert query(path, "SELECT count(*) FROM rocpd_kernel_dispatch") == [(0,)]


def test_device_qualifier_binds_a_counter_to_a_gpu(profiler, results) -> None:
    arguments = ("--pmc", "SQ_WAVES:device=0", "SQ_INSTS:device=1", "-d", "o", "-o", "x", "--", "true")
    done = profiler(*arguments)
    assert "Unable to find" not in done.stderr
    (path,) = results("*.db")
    assert query(path, "SELECT DISTINCT counter_name FROM counters_collection") == [("SQ_WAVES",)]


def test_filters_reduce_counters_but_not_the_kernel_trace(profiler, results) -> None:
    filters = ("--kernel-include-regex", "triad|gemm", "--kernel-exclude-regex", "gemm")
    ranges = ("--kernel-iteration-range", "[2,[4-5]]")
    common = ("--pmc", "SQ_WAVES", *filters, *ranges, "-o", "x")
    profiler(*common, "-d", "only", "--", "true")
    profiler(*common, "--kernel-trace", "-d", "both", "--", "true")
    both, only = results("*.db")
    counted = "SELECT kernel_name LIKE 'stream_triad%', count(*) FROM counters_collection GROUP BY 1"
    assert query(only, counted) == query(both, counted) == [(1, 3)]
    assert query(only, "SELECT count(*) FROM kernels") == [(3,)]
    assert query(both, "SELECT count(*) FROM kernels") == [(44,)]


def test_bad_iteration_range_is_an_error() -> None:
    with pytest.raises(ValueError, match="iteration range"):
        kernel_filter({"kernel_iteration_range": ["[a-b]"]})


def test_counter_and_trace_runs_name_the_same_kernels_and_launches(profiler, results) -> None:
    profiler("--kernel-trace", "-d", "a", "-o", "x", "--", "true")
    profiler("--pmc", "SQ_WAVES", "-d", "b", "-o", "x", "--", "true")
    trace, counters = results("*.db")
    launches = "SELECT name, dispatch_id, grid_x, workgroup_x FROM kernels ORDER BY dispatch_id"
    assert query(trace, launches) == query(counters, launches)
    assert query(trace, "SELECT duration FROM kernels") != query(counters, "SELECT duration FROM kernels")
