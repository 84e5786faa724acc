"""Recordings made to hurt: they cost a counted diagnostic or one clear line, never a traceback."""

from __future__ import annotations

import gzip
import random
import sqlite3
from contextlib import closing

import pytest

from rpl_core.errors import BadDataError
from rpl_rocprofv3.readers.catalog import all_readers


def read_all(files):
    """Read whatever is claimed; only expected errors may come. They are returned with the traces."""
    results = []
    for reader in all_readers():
        for found in reader.claim(files):
            if found.refusal is None:
                try:
                    results.extend(reader.read(found))
                except BadDataError as error:
                    results.append(error)
    return results


def add_dispatches(path, count, **changes):
    """Copies of dispatch 1 with changed columns, given as SQL over the number n (1, 2, ...)."""
    with closing(sqlite3.connect(path)) as connection:
        (name,) = [
            n
            for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if n.startswith("rocpd_kernel_dispatch_")
        ]
        columns = [
            r[1] for r in connection.execute(f'PRAGMA table_info("{name}")') if r[1] not in ("id", "guid")
        ]
        listed = ", ".join(f'"{c}"' for c in columns)
        chosen = ", ".join(changes.get(c, f'd."{c}"') for c in columns)
        connection.execute(
            f"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {count}) "
            f'INSERT INTO "{name}" ({listed}) SELECT {chosen} FROM c, "{name}" AS d WHERE d.id = 1'
        )
        connection.commit()
    return path


def test_a_hundred_thousand_streams_and_queues(rpl_make_rocpd, read):
    path = add_dispatches(
        rpl_make_rocpd([("k", 100, 200)]),
        100_000,
        stream_id="n * 1000003",
        queue_id="n * -7",
        start="1000 + n",
        end="2000 + n",
    )
    (trace,) = read(path)
    assert len(trace.streams) == 100_001
    assert len(trace.dispatches) == 100_001
    ids = [trace.streams[i].id for i in trace.dispatches.stream.tolist()]
    assert sorted(ids) == [0] + [n * 1000003 for n in range(1, 100_001)]


def test_ids_at_the_ends_of_64_bits(rpl_make_rocpd, read):
    path = add_dispatches(
        rpl_make_rocpd([("k", 100, 200)]),
        2,
        kernel_id="CASE n WHEN 1 THEN 9223372036854775807 ELSE -9223372036854775807 - 1 END",
        stream_id="9223372036854775807",
        dispatch_id="9223372036854775807",
    )
    (trace,) = read(path)
    assert len(trace.kernels) == 3
    assert len(trace.dispatches) == 3


def test_repeated_dispatch_ids_stay_separate_rows(rpl_make_rocpd, read):
    path = add_dispatches(rpl_make_rocpd([("k", 100, 200)]), 5, start="1000", end="1500")
    (trace,) = read(path)
    assert trace.dispatches.dispatch_id.tolist() == [1] * 6


def test_names_of_megabytes_are_kept(rpl_make_rocpd, read):
    path = rpl_make_rocpd([("k" * 2_000_000, 100, 200)])
    (trace,) = read(path)
    assert len(trace.kernels[0].name) == 2_000_000


def test_texts_that_are_no_utf8_are_readable(rpl_make_rocpd, read):
    path = rpl_make_rocpd([("k", 100, 200)])
    with closing(sqlite3.connect(path)) as connection:
        (name,) = [
            n
            for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if n.startswith("rocpd_info_kernel_symbol_")
        ]
        connection.execute(f"UPDATE \"{name}\" SET display_name = CAST(X'6bff' AS TEXT)")
        connection.commit()
    (trace,) = read(path)
    assert trace.kernels[0].name == "k\ufffd"


def test_info_rows_of_wrong_types_are_ignored(rpl_make_rocpd, read):
    path = rpl_make_rocpd([("k", 100, 200)])
    with closing(sqlite3.connect(path)) as connection:
        names = [n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for base, change in (
            (
                "rocpd_info_process_",
                "init = 'then', start = x'01', fini = x'00', pid = 'many', extdata = '[1'",
            ),
            ("rocpd_info_agent_", 'extdata = \'{"cu_count": "lots", "mem_banks": 7}\', uuid = \'x\''),
            ("rocpd_info_kernel_symbol_", "sgpr_count = 'a', arch_vgpr_count = -3, code_object_id = 'z'"),
        ):
            (name,) = [n for n in names if n.startswith(base)]
            connection.execute(f'UPDATE OR IGNORE "{name}" SET {change}')
        connection.commit()
    (trace,) = read(path)
    assert trace.processes[0].begin_ns is None
    assert {a.compute_units for a in trace.agents} == {None}
    assert (trace.kernels[0].sgpr, trace.kernels[0].arch_vgpr) == (None, None)


def test_deeply_nested_descriptions_are_ignored(rpl_make_rocpd, read):
    path = rpl_make_rocpd([("k", 100, 200)])
    with closing(sqlite3.connect(path)) as connection:
        (name,) = [
            n
            for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if n.startswith("rocpd_info_agent_")
        ]
        connection.execute(f'UPDATE "{name}" SET extdata = ?', ("[" * 200_000,))
        connection.commit()
    assert read(path)[0].agents[0].compute_units is None


@pytest.mark.parametrize("seed", range(25))
def test_flipped_bytes_in_a_database_never_end_in_a_traceback(rpl_make_rocpd, tmp_path, seed):
    content = bytearray(rpl_make_rocpd([("k", 100 * i, 100 * i + 50) for i in range(1, 40)]).read_bytes())
    rnd = random.Random(seed)
    for _ in range(rnd.choice([1, 5, 50, 500])):
        content[rnd.randrange(len(content))] = rnd.randrange(256)
    path = tmp_path / "flipped.db"
    path.write_bytes(content)
    read_all([path])


CSV_HEAD = (
    '"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id",'
    '"Start_Timestamp","End_Timestamp","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z",'
    '"Grid_Size_X","Grid_Size_Y","Grid_Size_Z"\n'
)


def csv_row(number, begin, end, name="k", agent="Agent 2", grid="256"):
    return f'"KERNEL_DISPATCH","{agent}",1,0,7,{number},1,"{name}",{number},{begin},{end},64,1,1,{grid},1,1\n'


@pytest.fixture
def kernel_trace(tmp_path):
    def written(text):
        path = tmp_path / "7_kernel_trace.csv"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        return path

    return written


def test_csv_rows_that_were_cut_are_counted(kernel_trace, read, codes):
    (trace,) = read(kernel_trace(CSV_HEAD + csv_row(1, 10, 20) + csv_row(2, 30, 40)[:40]))
    assert trace.dispatches.dispatch_id.tolist() == [1]
    assert codes(trace)["csv.misshapen_rows"] == 1


def test_csv_values_of_wrong_type_are_counted(kernel_trace, read, codes):
    text = CSV_HEAD + csv_row(1, 10, 20, grid="lots") + csv_row(2, "soon", 40) + csv_row(3, 50, 10**30)
    (trace,) = read(kernel_trace(text))
    assert trace.dispatches.dispatch_id.tolist() == [1]
    assert codes(trace)["csv.unreadable_values"] == 3
    assert codes(trace)["dispatch.no_time"] == 2


def test_csv_timestamps_of_a_spreadsheet_are_reported(kernel_trace, read, codes):
    (trace,) = read(kernel_trace(CSV_HEAD + csv_row(1, "8.1097E+14", "8.1097E+14")))
    assert codes(trace)["dispatch.rounded_timestamps"] == 1
    assert trace.dispatches.duration_ns().tolist() == [0]


def test_agents_that_nobody_describes_are_unknown(kernel_trace, tmp_path, read):
    (tmp_path / "7_agent_info.csv").write_text(
        '"Node_Id","Logical_Node_Id","Agent_Type","Name"\n0,0,"CPU","EPYC"\n5,1,"GPU","gfx942"\n'
    )
    text = CSV_HEAD + "".join(
        csv_row(i, i * 10, i * 10 + 5, agent=a)
        for i, a in enumerate(["Agent 1", "GPU 0", "5", "Agent 9", "??"], 1)
    )
    kernel_trace(text)
    (trace,) = read(tmp_path)
    assert [trace.agents[i].index if i >= 0 else None for i in trace.dispatches.agent] == [
        5,
        5,
        5,
        None,
        None,
    ]


def test_csv_with_an_endless_field_is_one_clear_line(kernel_trace):
    path = kernel_trace(CSV_HEAD + csv_row(1, 10, 20, name="x" * 300_000))
    reader = next(r for r in all_readers() if r.name == "rocprofv3-csv")
    (found,) = reader.claim([path])
    with pytest.raises(BadDataError, match="line 2"):
        reader.read(found)


def test_csv_with_nul_bytes_never_ends_in_a_traceback(kernel_trace):
    read_all([kernel_trace(CSV_HEAD + "\0\0" + csv_row(1, 10, 20))])


def test_a_bomb_of_csv_stops_at_its_limit(tmp_path, monkeypatch):
    from rpl_rocprofv3.readers import gzip_limits

    monkeypatch.setattr(gzip_limits, "_FLOOR_BYTES", 1 << 20)
    monkeypatch.setattr(gzip_limits, "_LARGEST_RATIO", 1)
    path = tmp_path / "7_kernel_trace.csv.gz"
    path.write_bytes(gzip.compress((CSV_HEAD + csv_row(1, 10, 20) * 200_000).encode()))
    reader = next(r for r in all_readers() if r.name == "rocprofv3-csv")
    (found,) = reader.claim([path])
    with pytest.raises(BadDataError, match="unpacks to more than 1 MiB"):
        reader.read(found)


@pytest.mark.data
@pytest.mark.parametrize("seed", range(8))
def test_flipped_bytes_in_real_recordings_never_end_in_a_traceback(rpl_shared_data, tmp_path, seed):
    rnd = random.Random(seed)
    for source in (
        "rocpd/rpd-matmul-gfx90a/matmul_result.rpd",
        "rocpd/synthetic-gfx942/pmc_results.db",
        "rocpd/csc-mi250x-csv/kernel_trace.csv",
        "counters_gfx942/path_MI200/pmc_perf.csv",
    ):
        content = bytearray((rpl_shared_data / source).read_bytes())
        for _ in range(rnd.choice([3, 30, 300])):
            content[rnd.randrange(len(content))] = rnd.randrange(256)
        path = tmp_path / f"{seed}_{source.rpartition('/')[2]}"
        path.write_bytes(content)
        read_all([path])
