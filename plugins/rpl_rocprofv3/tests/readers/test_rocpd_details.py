"""The traps of rocpd databases, each in a small database of its own (docs/reference/formats.md, 1)."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import attrs
import pytest

from rpl_core.model.metric import Origin
from rpl_core.model.trace import NO_HANDLE, Dispatches, TraceRole
from rpl_testkit.rocpd_writer import (
    AgentRow,
    CodeObjectRow,
    CopyRow,
    CounterDefinitionRow,
    CounterRow,
    DispatchRow,
    KernelRow,
    ProcessRow,
    QueueRow,
    RegionArgument,
    RegionRow,
    RocpdContents,
    StreamedCounterRow,
    StreamRow,
    write_rocpd,
)

HIP = "HIP_RUNTIME_API_EXT"
T0 = 1_000_000


def dispatch(number, begin, end, **changes):
    row = DispatchRow(
        dispatch_id=number,
        kernel_id=1,
        agent=1,
        queue_id=1,
        stream_id=0,
        begin_ns=T0 + begin,
        end_ns=T0 + end,
        grid=(256, 1, 1),
        workgroup=(64, 1, 1),
        stack_id=number,
    )
    return attrs.evolve(row, **changes)


def contents(dispatches, **changes):
    made = RocpdContents(
        guid="00000096-88a3-78a3-98ca-18ea8b796f0d",
        process=ProcessRow(pid=100, command="./app", begin_ns=T0, end_ns=T0 + 10**9),
        agents=(
            AgentRow(index=0, kind="CPU", name="cpu", product_name="cpu"),
            AgentRow(
                index=1,
                kind="GPU",
                name="gfx942",
                product_name="MI300X",
                device_id=29857,
                extdata={"wave_front_size": 64, "num_xcc": 8},
            ),
        ),
        kernels=(KernelRow(1, "add(float*)", "_Z3addPf"), KernelRow(2, "mul(float*)", "_Z3mulPf")),
        dispatches=dispatches,
        code_objects=(CodeObjectRow(1, 1, "file://app"),),
        queues=(QueueRow(1, "Queue 0"), QueueRow(2, "Queue 1")),
        streams=(StreamRow(1, "Stream 0"), StreamRow(2, "Stream 1")),
        thread_ids=(100,),
    )
    return attrs.evolve(made, **changes)


@pytest.fixture
def write(tmp_path):
    def written(rows, *, name="run_results.db", synthetic=False, version="3", **changes):
        path = tmp_path / name
        write_rocpd(path, contents(rows, **changes), synthetic=synthetic, schema_version=version)
        return path

    return written


def edit(path, *statements):
    """Run statements; ``{table}`` of the plain name ``rocpd_x`` is written as ``@x``."""
    with closing(sqlite3.connect(path)) as connection:
        names = [r[0] for r in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for statement in statements:
            for name in sorted(names, key=len, reverse=True):
                statement = statement.replace(
                    f"@{name.removeprefix('rocpd_').split('_0000')[0]} ", f'"{name}" '
                )
            connection.execute(statement)
        connection.commit()
    return path


def test_rows_come_in_order_of_time_whatever_their_ids_say(write, read):
    (trace,) = read(write([dispatch(1, 300, 400), dispatch(2, 100, 200), dispatch(3, 100, 150)]))
    assert trace.dispatches.dispatch_id.tolist() == [3, 2, 1]


def test_synthetic_recordings_say_so(write, read):
    (trace,) = read(write([dispatch(1, 0, 10)], synthetic=True))
    assert trace.origin is Origin.SYNTHETIC
    (trace,) = read(write([dispatch(1, 0, 10)], name="m_results.db"))
    assert trace.origin is Origin.MEASURED


def test_an_unknown_mark_of_origin_is_not_trusted(write, read, codes):
    path = edit(
        write([dispatch(1, 0, 10)], synthetic=True),
        "UPDATE @metadata SET value = 'real' WHERE tag = 'rpl_origin'",
    )
    (trace,) = read(path)
    assert trace.origin is Origin.SYNTHETIC
    assert codes(trace)["origin.unknown_mark"] == 1


def test_modelled_recordings_stay_modelled(write, read):
    path = edit(
        write([dispatch(1, 0, 10)], synthetic=True),
        "UPDATE @metadata SET value = 'modelled' WHERE tag = 'rpl_origin'",
    )
    assert read(path)[0].origin is Origin.MODELLED


@pytest.mark.parametrize("version", ["3", "3.0.1", "3.0.2", "3.0.3", "3.0.4", "3.0.5"])
def test_every_schema_version_is_read_alike(write, read, version):
    definition = (CounterDefinitionRow("SQ_WAVES", 1, "SQ"),)
    path = write(
        [dispatch(1, 0, 10), dispatch(2, 20, 30)],
        version=version,
        counters=(CounterRow(1, "SQ_WAVES", (2.0, 2.0)), CounterRow(2, "SQ_WAVES", (3.0, 1.0))),
        counter_definitions=definition,
    )
    (trace,) = read(path)
    assert trace.source.format == f"rocpd {'3.0.0' if version == '3' else version}"
    assert trace.counters.value.tolist() == [2, 2, 3, 1]
    assert trace.counters.instance.tolist() == [0, 1, 0, 1]


def test_columns_decide_and_not_the_version_text(write, read):
    path = edit(
        write([dispatch(1, 0, 10)], version="3.0.5"),
        "UPDATE @metadata SET value = '3' WHERE tag = 'schema_version'",
    )
    assert read(path)[0].source.format == "rocpd 3.0.5"


def test_streamed_samples_are_not_added_to_dispatch_counters(write, read, codes):
    path = write(
        [dispatch(1, 0, 10)],
        version="3.0.3",
        counters=(CounterRow(1, "SQ_WAVES", (4.0,)),),
        streamed_counters=(StreamedCounterRow(1, "SQ_WAVES", T0 + 5, 99.0, 0, 0, 0),),
        counter_definitions=(CounterDefinitionRow("SQ_WAVES", 1, "SQ"),),
    )
    (trace,) = read(path)
    assert trace.counters.value.tolist() == [4.0]
    assert codes(trace)["counter.streamed_samples"] == 1


def test_hardware_coordinates_give_the_instance(write, read):
    path = write(
        [dispatch(1, 0, 10)],
        version="3.0.3",
        counters=(CounterRow(1, "GRBM_COUNT", (10.0, 20.0, 30.0)),),
        counter_definitions=(CounterDefinitionRow("GRBM_COUNT", 1, "GRBM"),),
    )
    edit(path, "UPDATE @pmc_event SET xcc = 3 - id, shader_engine = 0, instance = 0")
    values = read(path)[0].counters
    assert values.instance.tolist() == [0, 1, 2]
    assert values.value.tolist() == [30.0, 20.0, 10.0]


def test_pmc_rows_make_a_counter_pass_that_is_no_source_of_time(write, read):
    rows = (CounterRow(1, "SQ_WAVES", (4.0,)),)
    path = write(
        [dispatch(1, 0, 10)], counters=rows, counter_definitions=(CounterDefinitionRow("SQ_WAVES", 1, "SQ"),)
    )
    assert read(path)[0].role is TraceRole.COUNTERS


def test_readings_without_dispatch_or_number_are_counted(write, read, codes):
    definitions = (CounterDefinitionRow("A", 1, "SQ"), CounterDefinitionRow("B", 1, "SQ"))
    path = write(
        [dispatch(1, 0, 10), dispatch(2, 20, 30)],
        counters=(
            CounterRow(1, "A", (1.0, 2.0)),
            CounterRow(1, "B", (5.0,)),
            CounterRow(2, "A", (3.0,)),
        ),
        counter_definitions=definitions,
    )
    edit(
        path,
        "UPDATE @pmc_event SET value = NULL WHERE id = 1",
        "UPDATE @pmc_event SET event_id = 99999 WHERE value = 5.0",
    )
    (trace,) = read(path)
    # One of two instances of A is missing on dispatch 1: no half sum.
    assert trace.counters.value.tolist() == [3.0]
    assert codes(trace)["counter.not_a_number"] == 1
    assert codes(trace)["counter.unknown_dispatch"] == 1


def test_uneven_instance_rows_are_reported(write, read, codes):
    path = write(
        [dispatch(1, 0, 10), dispatch(2, 20, 30)],
        counters=(CounterRow(1, "A", (1.0, 2.0)), CounterRow(2, "A", (3.0,))),
        counter_definitions=(CounterDefinitionRow("A", 1, "SQ"),),
    )
    assert codes(read(path)[0])["counter.uneven_rows"] == 1


@pytest.mark.parametrize(("waves", "reported"), [(4.0, 0), (12.0, 1), (5.0, 0)])
def test_waves_added_up_over_replays_are_reported(write, read, codes, waves, reported):
    path = write(
        [dispatch(1, 0, 10)],  # 256 work-items in groups of 64: 4 waves of 64
        counters=(CounterRow(1, "SQ_WAVES", (waves,)),),
        counter_definitions=(CounterDefinitionRow("SQ_WAVES", 1, "SQ"),),
    )
    assert codes(read(path)[0]).get("counter.waves_multiplied", 0) == reported


def test_dispatches_that_the_kernels_view_loses_are_read_and_counted(write, read, codes):
    path = write([dispatch(1, 0, 10), dispatch(2, 20, 30)])
    edit(path, "DELETE FROM @info_thread WHERE 1")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM kernels").fetchone() == (0,)
    (trace,) = read(path)
    assert len(trace.dispatches) == 2
    assert codes(trace)["rocpd.kernels_view_loses_rows"] == 2


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE @kernel_dispatch SET kernel_id = 555 WHERE id = 1", "dispatch.unknown_kernel"),
        ("UPDATE @kernel_dispatch SET agent_id = 555 WHERE id = 1", "dispatch.unknown_agent"),
        ("UPDATE @kernel_dispatch SET pid = 555 WHERE id = 1", "dispatch.unknown_process"),
        ("UPDATE @kernel_dispatch SET event_id = NULL WHERE id = 1", "rocpd.kernels_view_loses_rows"),
        ("UPDATE @kernel_dispatch SET queue_id = 555 WHERE id = 1", "rocpd.kernels_view_loses_rows"),
        ("UPDATE @kernel_dispatch SET grid_size_x = -5 WHERE id = 1", "dispatch.impossible_geometry"),
        ("UPDATE @kernel_dispatch SET grid_size_x = 1 << 40 WHERE id = 1", "dispatch.impossible_geometry"),
        ("UPDATE @kernel_dispatch SET grid_size_x = 'many' WHERE id = 1", "dispatch.unreadable_values"),
        ("UPDATE @kernel_dispatch SET end = start WHERE id = 1", "dispatch.zero_duration"),
        ("UPDATE @kernel_dispatch SET start = 5, end = 6 WHERE id = 1", "clock.before_process_start"),
    ],
)
def test_odd_rows_are_kept_and_counted(write, read, codes, statement, code):
    (trace,) = read(edit(write([dispatch(1, 0, 10), dispatch(2, 20, 30)]), statement))
    assert len(trace.dispatches) == 2
    assert codes(trace)[code] == 1


def test_dispatches_of_an_unknown_process_belong_to_the_only_one_that_is_described(write, read):
    """Rows were lost; which process ran them is no question where there is one."""
    (trace,) = read(
        edit(
            write([dispatch(1, 0, 10), dispatch(2, 20, 30)]),
            "UPDATE @kernel_dispatch SET pid = 555 WHERE id = 1",
        )
    )
    assert trace.dispatches.process.tolist() == [0, 0]


def test_dispatches_of_an_unknown_process_stay_unknown_beside_two(write, read, codes):
    path = edit(
        write([dispatch(1, 0, 10), dispatch(2, 20, 30)]),
        "INSERT INTO @info_process (id, nid, pid, guid) SELECT 77, nid, 77, guid FROM @info_process WHERE 1",
        "UPDATE @kernel_dispatch SET pid = 555 WHERE id = 1",
    )
    (trace,) = read(path)
    assert (len(trace.processes), trace.dispatches.process.tolist()) == (2, [-1, 1])
    assert codes(trace)["dispatch.unknown_process"] == 1


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE @kernel_dispatch SET end = start - 1 WHERE id = 1", "dispatch.negative_duration"),
        ("UPDATE @kernel_dispatch SET start = 'yesterday' WHERE id = 1", "dispatch.no_time"),
        ("UPDATE @kernel_dispatch SET start = -7 WHERE id = 1", "dispatch.no_time"),
        ("UPDATE @kernel_dispatch SET end = 9223372036854775807 WHERE id = 1", "dispatch.no_time"),
    ],
)
def test_rows_without_a_believable_duration_are_left_out_and_counted(write, read, codes, statement, code):
    (trace,) = read(edit(write([dispatch(1, 0, 10), dispatch(2, 20, 30)]), statement))
    assert trace.dispatches.dispatch_id.tolist() == [2]
    assert codes(trace)[code] == 1


def test_counters_follow_their_dispatch_when_rows_are_left_out(write, read):
    path = write(
        [dispatch(1, 0, 10), dispatch(2, 30, 40), dispatch(3, 20, 25)],
        counters=tuple(CounterRow(i, "A", (float(i),)) for i in (1, 2, 3)),
        counter_definitions=(CounterDefinitionRow("A", 1, "SQ"),),
    )
    (trace,) = read(edit(path, "UPDATE @kernel_dispatch SET end = start - 1 WHERE id = 1"))
    owners = trace.dispatches.dispatch_id[trace.counters.dispatch].tolist()
    assert dict(zip(owners, trace.counters.value.tolist(), strict=True)) == {2: 2.0, 3: 3.0}
    assert trace.counters.duration_ns.tolist() == [5, 10]


def test_unknown_kernels_have_a_name_that_says_so(write, read):
    (trace,) = read(
        edit(write([dispatch(1, 0, 10)]), "UPDATE @kernel_dispatch SET kernel_id = 555 WHERE id = 1")
    )
    assert [trace.kernels[i].name for i in trace.dispatches.kernel] == ["unknown kernel (id 555)"]


def test_streams_and_queues_keep_their_ids_and_names(write, read):
    (trace,) = read(write([dispatch(1, 0, 10, stream_id=2, queue_id=2), dispatch(2, 20, 30)]))
    assert [(s.id, s.name) for s in trace.streams] == [(0, "Default Stream"), (2, "Stream 1")]
    assert [trace.streams[i].id for i in trace.dispatches.stream] == [2, 0]
    assert [trace.queues[i].id for i in trace.dispatches.queue] == [2, 1]


def test_grouping_by_queue_is_reported(write, read):
    process = ProcessRow(100, "./app", T0, T0 + 10**9, extdata={"group_by_queue": True})
    assert read(write([dispatch(1, 0, 10)], process=process))[0].grouped_by_queue


def call(number, name, begin, end, *, category=HIP, parent=0, **arguments):
    listed = tuple(RegionArgument("t", key, value) for key, value in arguments.items())
    return RegionRow(name, category, number, T0 + begin, T0 + end, listed, parent_stack_id=parent)


def test_arguments_of_calls_are_numbers(write, read, codes):
    regions = (
        call(1, "hipStreamWaitEvent", 0, 5, stream="0x55d0c0a01000", event="0xff", flags="1"),
        call(2, "hipSetDevice", 6, 7, deviceId="3"),
        call(3, "hipLaunchKernel", 8, 9, stream="nullptr"),
        call(4, "hipDeviceSynchronize", 10, 11),
        call(5, "hipStreamSynchronize", 12, 13, stream="garbage"),
    )
    (trace,) = read(write([dispatch(3, 20, 30)], regions=regions))
    c = trace.api_calls
    none = int(NO_HANDLE)
    assert c.stream_handle.tolist() == [0x55D0C0A01000, none, 0, none, none]
    assert c.event_handle.tolist() == [0xFF, none, none, none, none]
    assert c.flags.tolist() == [1, -1, -1, -1, -1]
    assert c.device.tolist() == [-1, 3, -1, -1, -1]
    assert codes(trace)["api.unreadable_handle"] == 1


def test_zero_length_calls_are_read_from_the_sample_table(write, read):
    regions = (
        call(1, "hipEventRecord", 5, 5, stream="0x10", event="0x20"),
        call(2, "hipLaunchKernel", 8, 9, stream="0x10"),
    )
    path = write([dispatch(2, 20, 30)], regions=regions)
    # As the profiler does: a call of no length goes to rocpd_sample, its name and thread to rocpd_track.
    edit(
        path,
        "INSERT INTO @track (id, nid, pid, tid, name_id) "
        "SELECT 1, nid, pid, tid, name_id FROM @region WHERE id = 1",
        "INSERT INTO @sample (track_id, timestamp, event_id) "
        "SELECT 1, start, event_id FROM @region WHERE id = 1",
        "DELETE FROM @region WHERE id = 1",
    )
    (trace,) = read(path)
    names = [trace.api_functions[i] for i in trace.api_calls.function]
    assert names == ["hipEventRecord", "hipLaunchKernel"]
    assert trace.api_calls.event_handle.tolist()[0] == 0x20
    assert trace.api_calls.correlation_id.tolist() == [1, 2]
    assert trace.api_calls.begin_ns[0] == trace.api_calls.end_ns[0] == T0 + 5


def test_only_hip_runtime_calls_are_api_calls(write, read):
    regions = (
        call(1, "hipLaunchKernel", 0, 9, category="HIP_RUNTIME_API", stream="0x10"),
        call(2, "__hipPushCallConfiguration", 1, 2, category="HIP_COMPILER_API_EXT"),
        call(3, "hsa_queue_create", 3, 4, category="HSA_CORE_API"),
    )
    (trace,) = read(write([dispatch(1, 20, 30)], regions=regions))
    assert [trace.api_functions[i] for i in trace.api_calls.function] == ["hipLaunchKernel"]


def test_a_dispatch_of_an_inner_hsa_call_belongs_to_the_hip_call_around_it(write, read):
    regions = (
        call(1, "hipLaunchKernel", 0, 19, stream="0x10"),
        call(7, "hsa_outer", 2, 8, category="HSA_CORE_API", parent=1),
        call(8, "hsa_inner", 3, 4, category="HSA_CORE_API", parent=7),
    )
    rows = [
        dispatch(1, 20, 30, stack_id=8),
        dispatch(2, 40, 50, stack_id=1),
        dispatch(3, 60, 70, stack_id=77),
    ]
    (trace,) = read(write(rows, regions=regions))
    assert trace.dispatches.correlation_id.tolist() == [1, 1, 77]


def test_cyclic_ancestors_end(write, read):
    regions = (
        call(7, "hsa_a", 2, 8, category="HSA_CORE_API", parent=8),
        call(8, "hsa_b", 3, 4, category="HSA_CORE_API", parent=7),
    )
    (trace,) = read(write([dispatch(1, 20, 30, stack_id=8)], regions=regions))
    assert trace.dispatches.correlation_id.tolist() == [8]


def test_dispatches_before_their_launch_are_reported(write, read, codes):
    regions = (call(1, "hipLaunchKernel", 50, 60, stream="0x10"),)
    (trace,) = read(write([dispatch(1, 20, 30)], regions=regions))
    assert codes(trace)["clock.before_launch"] == 1


def test_copies_share_the_streams_of_dispatches(write, read):
    copy = CopyRow("MEMORY_COPY_HOST_TO_DEVICE", 0, 1, 4096, 1, T0 + 1, T0 + 5, stack_id=9)
    (trace,) = read(write([dispatch(1, 10, 20, stream_id=1)], copies=(copy,)))
    assert trace.copies.stream.tolist() == trace.dispatches.stream.tolist() == [0]
    assert trace.copies.correlation_id.tolist() == [9]


def test_an_empty_recording_is_an_empty_trace(write, read):
    (trace,) = read(write([]))
    assert (len(trace.dispatches), trace.kernels, trace.copies) == (0, (), None)


def test_index_columns_have_the_types_of_the_model(write, read):
    (trace,) = read(write([dispatch(1, 0, 10), dispatch(2, 20, 30, grid=(512, 1, 1))]))
    types = {
        field.name: str(getattr(trace.dispatches, field.name).dtype) for field in attrs.fields(Dispatches)
    }
    wide = ("dispatch_id", "correlation_id", "begin_ns", "end_ns")
    assert types == {name: "int64" if name in wide else "int32" for name in types}


def test_reading_twice_gives_the_same(write, read):
    path = write([dispatch(1, 300, 400), dispatch(2, 100, 200, grid=(64, 2, 1))])
    (first,), (second,) = read(path), read(path)
    for name in ("begin_ns", "shape", "kernel", "correlation_id"):
        assert getattr(first.dispatches, name).tolist() == getattr(second.dispatches, name).tolist()
    assert first.diagnostics == second.diagnostics


def merged(target, *sources):
    """A merged database: the tables of every source, and plain views that are their unions."""
    with closing(sqlite3.connect(target)) as connection:
        tables: dict[str, list[str]] = {}
        for number, source in enumerate(sources):
            connection.execute(f"ATTACH '{source}' AS s{number}")
            for name, sql in connection.execute(
                f"SELECT name, sql FROM s{number}.sqlite_master WHERE type = 'table' AND name LIKE 'rocpd%'"
            ).fetchall():
                connection.execute(sql)
                connection.execute(f'INSERT INTO main."{name}" SELECT * FROM s{number}."{name}"')
                base = name[: -len("_00000096_88a3_78a3_98ca_18ea8b796f0d")]
                tables.setdefault(base, []).append(name)
        for base, names in tables.items():
            union = " UNION ALL ".join(f'SELECT * FROM "{name}"' for name in names)
            connection.execute(f'CREATE VIEW "{base}" AS {union}')
        connection.commit()
    return target


def two_processes(write):
    first = write([dispatch(1, 0, 10), dispatch(2, 20, 30)], name="100_results.db")
    second = write(
        [dispatch(1, 5, 25)],
        name="200_results.db",
        guid="00000097-1111-78a3-98ca-18ea8b796f0d",
        process=ProcessRow(pid=200, command="./app", begin_ns=T0 + 1, end_ns=T0 + 10**9),
    )
    return first, second


def test_a_merged_database_keeps_its_processes_apart(write, read, tmp_path):
    path = merged(tmp_path / "merged.db", *two_processes(write))
    (trace,) = read(path)
    assert [(p.guid[:8], p.pid) for p in trace.processes] == [("00000096", 100), ("00000097", 200)]
    d = trace.dispatches
    assert list(zip(d.process.tolist(), d.dispatch_id.tolist(), strict=True)) == [(0, 1), (1, 1), (0, 2)]
    assert len([a for a in trace.agents if a.kind == "GPU"]) == 1


@pytest.mark.parametrize(("init", "start"), [(T0, "NULL"), ("NULL", T0), (T0, 7)])
def test_a_process_begins_when_it_was_initialised_or_else_started(write, read, init, start):
    path = write([dispatch(1, 0, 10)])
    (trace,) = read(edit(path, f"UPDATE @info_process SET init = {init}, start = {start}"))
    assert trace.processes[0].begin_ns == T0


def test_files_of_processes_that_lived_together_are_one_trace(write, read):
    first, second = two_processes(write)
    (trace,) = read(first.parent)
    assert [p.pid for p in trace.processes] == [100, 200]
    assert len(trace.dispatches) == 3
    assert trace.source.paths == (str(first), str(second))


def test_sources_of_a_merged_database_are_not_counted_twice(write, claim, tmp_path):
    first, second = two_processes(write)
    whole = merged(tmp_path / "merged.db", first, second)
    sets = claim(tmp_path)
    assert {s.paths[0].name: s.refusal is None for s in sets} == {
        "merged.db": True,
        "100_results.db": False,
        "200_results.db": False,
    }
    assert "repeats the recording in merged.db" in next(s.refusal for s in sets if s.paths[0] == first)
    assert whole.exists()


def test_one_table_with_several_guids_is_split(write, read, tmp_path):
    """Some tools put the rows of all processes into one set of tables."""
    first, second = two_processes(write)
    with closing(sqlite3.connect(first)) as connection:
        connection.execute(f"ATTACH '{second}' AS other")
        suffix = "_00000097_1111_78a3_98ca_18ea8b796f0d"
        for (name,) in connection.execute(
            "SELECT name FROM other.sqlite_master WHERE type = 'table' AND name LIKE 'rocpd%'"
        ).fetchall():
            target = name[: -len(suffix)] + "_00000096_88a3_78a3_98ca_18ea8b796f0d"
            columns = [r[1] for r in connection.execute(f'PRAGMA table_info("{target}")')]
            listed = ", ".join(f'"{c}"' for c in columns)
            shifted = ", ".join(
                '"id" + 1000000' if c == "id" and "info" not in name and "string" not in name else f'"{c}"'
                for c in columns
            )
            keep = "OR IGNORE" if "info" in name or "string" in name or "metadata" in name else ""
            connection.execute(
                f'INSERT {keep} INTO "{target}" ({listed}) SELECT {shifted} FROM other."{name}"'
            )
        connection.commit()
    (trace,) = read(first)
    assert sorted(p.pid for p in trace.processes) == [100, 200]
    assert len(trace.dispatches) == 3


def test_pc_samples_in_a_database_are_refused_by_name_and_times_are_read(write, read, codes):
    path = edit(write([dispatch(1, 0, 10)]), "CREATE TABLE rocpd_gpu_pc_sample (id INTEGER, exec_mask TEXT)")
    (trace,) = read(path)
    assert codes(trace) == {}
    (trace,) = read(edit(path, "INSERT INTO rocpd_gpu_pc_sample VALUES (1, '0xffff')"))
    assert codes(trace) == {"rocpd.pc_samples_not_read": 1}
    assert len(trace.dispatches) == 1
