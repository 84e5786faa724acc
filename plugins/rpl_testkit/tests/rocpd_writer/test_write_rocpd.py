"""What a written file says, read back with plain sqlite3."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

from rpl_core.errors import RplError, UsageError
from rpl_testkit.rocpd_writer import (
    AgentRow,
    AllocationRow,
    CopyRow,
    CounterRow,
    DispatchRow,
    GraphLaunchRow,
    HipEventRow,
    KernelRow,
    ProcessRow,
    QueueRow,
    RegionArgument,
    RegionRow,
    RocpdContents,
    StreamedCounterRow,
    StreamRow,
    guid_from_seed,
    write_rocpd,
)


def dispatch(number: int = 1, **changes: Any) -> DispatchRow:
    base = DispatchRow(
        dispatch_id=number,
        kernel_id=1,
        agent=1,
        queue_id=1,
        stream_id=1,
        begin_ns=1_000 * number,
        end_ns=1_000 * number + 700,
        grid=(98_304, 1, 1),
        workgroup=(256, 1, 1),
        stack_id=40 + number,
    )
    return attrs.evolve(base, **changes)


def contents(**changes: Any) -> RocpdContents:
    base = RocpdContents(
        guid=guid_from_seed("test"),
        process=ProcessRow(pid=77, command="./app 100", begin_ns=10, end_ns=99_000),
        agents=(AgentRow(0, "CPU", "cpu", "cpu"), AgentRow(1, "GPU", "gfx942", "MI300X", device_id=29857)),
        kernels=(KernelRow(1, "axpy(float*)", "_Z4axpyPf", arch_vgpr=12, accum_vgpr=4),),
        queues=(QueueRow(1, "Queue 0"),),
        streams=(StreamRow(1, "Stream 0"),),
        dispatches=(dispatch(),),
    )
    return attrs.evolve(base, **changes)


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "1_results.db"
    left = [p.name for p in tmp_path.iterdir() if p.name.endswith(".tmp")]
    assert not left, "temporary files stay behind"


def test_dispatch_shows_in_the_kernels_view_with_work_items_and_stack_id(path: Path) -> None:
    write_rocpd(path, contents(dispatches=(dispatch(external_id=9),)), synthetic=True)
    row = query(
        path,
        "SELECT name, category, grid_x, workgroup_x, duration, stack_id, parent_stack_id, corr_id, "
        "stream, queue, vgpr_count, accum_vgpr_count, region, tid, agent_type, nid, pid FROM kernels",
    )
    expected = ("axpy(float*)", "KERNEL_DISPATCH", 98_304, 256, 700, 41, 41, 9)
    assert row == [(*expected, "Stream 0", "Queue 0", 12, 4, "", 77, "GPU", 1, 77)]


def test_default_queue_and_stream_always_exist(path: Path) -> None:
    write_rocpd(path, contents(queues=(), streams=()), synthetic=True)
    assert query(path, "SELECT id, name FROM rocpd_info_queue") == [(0, "Default Queue")]
    assert query(path, "SELECT id, name FROM rocpd_info_stream") == [(0, "Default Stream")]


def test_dispatch_without_queue_row_is_lost_by_the_view_but_not_by_the_table(path: Path) -> None:
    write_rocpd(path, contents(dispatches=(dispatch(queue_id=5), dispatch(2))), synthetic=True)
    assert query(path, "SELECT count(*) FROM rocpd_kernel_dispatch") == [(2,)]
    assert query(path, "SELECT dispatch_id FROM kernels") == [(2,)]


def test_region_keeps_its_arguments_in_order_and_links_to_the_dispatch(path: Path) -> None:
    arguments = (
        RegionArgument("dim3", "numBlocks", "{z=1}"),
        RegionArgument("ihipStream_t*", "stream", "0x1"),
    )
    region = RegionRow("hipLaunchKernel", "HIP_RUNTIME_API_EXT", 41, 100, 900, arguments)
    write_rocpd(path, contents(regions=(region,)), synthetic=True)
    found = query(path, "SELECT arg_position, arg_type, arg_name, arg_value FROM events_args ORDER BY 1")
    assert found == [(0, "dim3", "numBlocks", "{z=1}"), (1, "ihipStream_t*", "stream", "0x1")]
    linked = "SELECT r.name, k.name FROM kernels k JOIN regions r ON r.stack_id = k.stack_id"
    assert query(path, linked) == [("hipLaunchKernel", "axpy(float*)")]
    assert query(path, "SELECT id FROM rocpd_region") == [(41,)]


def test_copy_has_no_queue_and_names_both_agents(path: Path) -> None:
    copy = CopyRow("MEMORY_COPY_HOST_TO_DEVICE", 0, 1, 4096, 1, 50, 80, stack_id=3)
    write_rocpd(path, contents(copies=(copy,)), synthetic=True)
    columns = "name, size, duration, src_agent_type, dst_agent_type, queue_id, stream_name"
    sql = f"SELECT {columns} FROM memory_copies"
    assert query(path, sql) == [("MEMORY_COPY_HOST_TO_DEVICE", 4096, 30, "CPU", "GPU", None, "Stream 0")]


def test_counter_instances_are_kept_and_the_view_adds_them(path: Path) -> None:
    counters = (CounterRow(1, "GRBM_GUI_ACTIVE", (100.0,) * 8), CounterRow(1, "SQ_WAVES", (3.0, 4.0)))
    write_rocpd(path, contents(counters=counters), synthetic=True)
    raw = query(path, "SELECT counter_name, count(*) FROM pmc_events GROUP BY 1 ORDER BY 1")
    assert raw == [("GRBM_GUI_ACTIVE", 8), ("SQ_WAVES", 2)]
    summed = query(path, "SELECT counter_name, value, block FROM counters_collection ORDER BY 1")
    assert summed == [("GRBM_GUI_ACTIVE", 800.0, "GRBM"), ("SQ_WAVES", 7.0, "SQ")]


def test_counter_of_an_unknown_dispatch_is_refused_and_leaves_no_file(path: Path) -> None:
    with pytest.raises(UsageError, match="dispatch 9"):
        write_rocpd(path, contents(counters=(CounterRow(9, "SQ_WAVES", (1.0,)),)), synthetic=True)
    assert not path.exists()


def test_streamed_samples_stay_out_of_the_summed_counters(path: Path) -> None:
    streamed = (StreamedCounterRow(1, "SQ_WAVES", 1_200, 50.0, xcc=3, shader_engine=2, instance=1),)
    given = contents(counters=(CounterRow(1, "SQ_WAVES", (7.0,)),), streamed_counters=streamed)
    write_rocpd(path, given, synthetic=True, schema_version="3.0.3")
    assert query(path, "SELECT value FROM counters_collection") == [(7.0,)]
    found = query(path, "SELECT value, xcc, shader_engine, instance, timestamp FROM spm_counters")
    assert found == [(50.0, 3, 2, 1, 1_200)]


def test_graph_and_event_rows_of_later_variants_are_written(path: Path) -> None:
    given = contents(
        dispatches=(dispatch(graph_exec_id=5, graph_node_id=2),),
        graph_launches=(GraphLaunchRow(5, 1, 900, 1_000, 41, agent=1, queue_id=1),),
        hip_events=(HipEventRow("HIP_EVENT_WAIT", 0xAB, 1, 0, 950, 990),),
    )
    write_rocpd(path, given, synthetic=True, schema_version="3.0.4")
    assert query(path, "SELECT graph_exec_id, graph_node_id FROM kernels") == [(5, 2)]
    assert query(path, "SELECT graph_exec_id, kernel_dispatch_count FROM graph_launches") == [(5, 1)]
    assert query(path, "SELECT name, source_queue_id FROM hip_events") == [("HIP_EVENT_WAIT", 0)]


def test_rows_that_a_variant_cannot_hold_are_refused(path: Path) -> None:
    given = contents(graph_launches=(GraphLaunchRow(5, 1, 900, 1_000, 41),))
    with pytest.raises(UsageError, match=r"graph_launches need rocpd schema 3\.0\.2"):
        write_rocpd(path, given, synthetic=True)


def test_nic_agents_are_allowed_from_the_variant_that_added_them(path: Path) -> None:
    given = contents(agents=(AgentRow(0, "NIC", "nic", "nic"), AgentRow(1, "GPU", "gfx942", "X")))
    with pytest.raises(RplError, match="CHECK"):
        write_rocpd(path, given, synthetic=True)
    write_rocpd(path, given, synthetic=True, schema_version="3.0.1")
    assert query(path, "SELECT type FROM rocpd_info_agent ORDER BY id") == [("NIC",), ("GPU",)]


def test_allocations_carry_their_flags(path: Path) -> None:
    row = AllocationRow("ALLOC", "SCRATCH", 5, 9, 64, agent=1, queue_id=1, extdata={"flags": 2})
    write_rocpd(path, contents(allocations=(row,)), synthetic=True)
    assert query(path, "SELECT operation, alloc_flags, category FROM scratch_memory") == [
        ("ALLOC", 2, "SCRATCH_MEMORY")
    ]


@pytest.mark.parametrize(("version", "recorded"), [("3", "3"), ("3.0.0", "3"), ("3.0.3", "3.0.3")])
def test_recorded_schema_version(path: Path, version: str, recorded: str) -> None:
    write_rocpd(path, contents(), synthetic=True, schema_version=version)
    assert query(path, "SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'") == [(recorded,)]


def test_unknown_schema_version_is_refused(path: Path) -> None:
    with pytest.raises(UsageError, match=r"4\.0"):
        write_rocpd(path, contents(), synthetic=True, schema_version="4.0")


def test_synthetic_files_say_so_twice(path: Path) -> None:
    write_rocpd(path, contents(), synthetic=True)
    assert query(path, "SELECT value FROM rocpd_metadata WHERE tag = 'rpl_origin'") == [("synthetic",)]
    (command,) = query(path, "SELECT command FROM rocpd_info_process")[0]
    assert "synthetic" in command
    assert command.endswith("./app 100")


def test_other_files_carry_no_stamp(path: Path) -> None:
    write_rocpd(path, contents(), synthetic=False)
    assert query(path, "SELECT value FROM rocpd_metadata WHERE tag = 'rpl_origin'") == []
    assert query(path, "SELECT command FROM rocpd_info_process") == [("./app 100",)]


def test_environment_is_empty(path: Path) -> None:
    write_rocpd(path, contents(), synthetic=True)
    assert query(path, "SELECT environment FROM rocpd_info_process") == [("{}",)]


def test_same_contents_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "a.db", tmp_path / "b.db"
    for target in (first, second):
        write_rocpd(target, contents(counters=(CounterRow(1, "SQ_WAVES", (1.0,)),)), synthetic=True)
    assert first.read_bytes() == second.read_bytes()


def test_failed_write_keeps_the_old_file(path: Path) -> None:
    path.write_text("old")

    def broken() -> Iterator[DispatchRow]:
        yield dispatch()
        raise ValueError("source broke")

    with pytest.raises(ValueError, match="source broke"):
        write_rocpd(path, contents(dispatches=broken()), synthetic=True)
    assert path.read_text() == "old"


def test_unwritable_place_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RplError, match="can't write"):
        write_rocpd(tmp_path / "absent" / "x.db", contents(), synthetic=True)


def test_rows_stream_in_batches_with_events_linked_one_to_one(path: Path) -> None:
    count = 120_001
    write_rocpd(path, contents(dispatches=(dispatch(i) for i in range(1, count + 1))), synthetic=True)
    sql = (
        "SELECT count(*), count(DISTINCT d.event_id), sum(e.stack_id = d.dispatch_id + 40) "
        "FROM rocpd_kernel_dispatch d JOIN rocpd_event e ON e.id = d.event_id"
    )
    assert query(path, sql) == [(count, count, count)]


def test_guid_repeats_for_a_seed_and_differs_between_seeds() -> None:
    assert guid_from_seed(3) == guid_from_seed(3)
    assert guid_from_seed(3) != guid_from_seed(4)
    assert guid_from_seed("x")[14] == "7", "a version 7 UUID"
