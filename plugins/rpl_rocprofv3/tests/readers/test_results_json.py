"""JSON results: the layout of the tool, streamed, with the same meaning as rocpd.

No public recording could be used here: these documents follow the field names of rocprofiler-sdk's own
serialisation and of its validation scripts.
"""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys

import pytest

from rpl_core.errors import BadDataError
from rpl_core.model.trace import NO_HANDLE, TraceRole
from rpl_rocprofv3.readers import json as records
from rpl_rocprofv3.readers.catalog import JsonReader
from rpl_rocprofv3.readers.json.work import NumberRows

GPU, CPU = 900, 800
KINDS = [
    {"kind": "NONE", "operations": []},
    {"kind": "HIP_RUNTIME_API_EXT", "operations": ["hipInit", "hipLaunchKernel", "hipSetDevice"]},
    {"kind": "HIP_COMPILER_API_EXT", "operations": ["__hipRegisterFunction"]},
    {"kind": "KERNEL_DISPATCH", "operations": ["KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_COMPLETE"]},
    {
        "kind": "MEMORY_COPY",
        "operations": ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_HOST", "MEMORY_COPY_HOST_TO_DEVICE"],
    },
    {"kind": "MARKER_CORE_API", "operations": ["roctxMarkA", "roctxRangePushA", "roctxRangeStartA"]},
    {"kind": "MARKER_CORE_RANGE_API", "operations": ["", "roctxThreadRangeA", "roctxProcessRangeA"]},
    {"kind": "MARKER_CONTROL_API", "operations": ["roctxProfilerPause"]},
]


def data_of(number, begin, end, kernel=1, grid=256):
    return {
        "size": 144,
        "correlation_id": {"internal": 10 + number, "external": 0},
        "start_timestamp": begin,
        "end_timestamp": end,
        "dispatch_info": {
            "size": 64,
            "agent_id": {"handle": GPU},
            "queue_id": {"handle": 1},
            "kernel_id": kernel,
            "dispatch_id": number,
            "private_segment_size": 16,
            "group_segment_size": 1024,
            "workgroup_size": {"x": 64, "y": 1, "z": 1},
            "grid_size": {"x": grid, "y": 2, "z": 1},
        },
    }


def traced(number, begin, end, stream=0, **changes):
    return {
        "kind": 3,
        "operation": 1,
        "thread_id": 7,
        **data_of(number, begin, end, **changes),
        "stream_id": {"handle": stream},
    }


def call(kind, operation, number, begin, end, **arguments):
    listed = [{"type": "t", "name": name, "value": value} for name, value in arguments.items()]
    return {
        "size": 56,
        "kind": kind,
        "operation": operation,
        "correlation_id": {"internal": number, "external": 0, "ancestor": 0},
        "start_timestamp": begin,
        "end_timestamp": end,
        "thread_id": 7,
        "args": listed,
        "retval": {"hipError_t_retval": 0},
    }


def document(dispatches=(), calls=(), copies=(), counters=(), processes=1, markers=(), texts=()):
    process = {
        "metadata": {
            "pid": 4242,
            "init_time": 50,
            "fini_time": 10_000,
            "config": {"group_by_queue": False},
            "command": ["./app", "-n", "3"],
        },
        "agents": [
            {"size": 312, "id": {"handle": CPU}, "type": 1, "name": "EPYC", "node_id": 0},
            {
                "size": 312,
                "id": {"handle": GPU},
                "type": 2,
                "name": "gfx942",
                "product_name": "MI300X",
                "node_id": 2,
                "device_id": 29857,
                "num_xcc": 8,
                "cu_count": 304,
                "wave_front_size": 64,
                "mem_banks": [{"heap_type": 1, "size_in_bytes": 1000}],
            },
        ],
        "counters": [
            {"agent_id": {"handle": GPU}, "id": {"handle": 71}, "name": "SQ_WAVES"},
            {"agent_id": {"handle": GPU}, "id": {"handle": 72}, "name": "GRBM_COUNT"},
        ],
        "strings": {"callback_records": [], "buffer_records": KINDS, "marker_api": list(texts)},
        "code_objects": [{"code_object_id": 5, "uri": "file://app"}],
        "kernel_symbols": [
            {},
            {
                "kernel_id": 1,
                "code_object_id": 5,
                "kernel_name": "_Z3addPf.kd",
                "formatted_kernel_name": "add(float*)",
                "sgpr_count": 16,
                "arch_vgpr_count": 8,
                "accum_vgpr_count": 0,
                "group_segment_size": 512,
                "kernarg_segment_size": 280,
            },
        ],
        "host_functions": [],
        "callback_records": {"counter_collection": list(counters)},
        "buffer_records": {
            "kernel_dispatch": list(dispatches),
            "hip_api": list(calls),
            "hsa_api": [],
            "memory_copy": list(copies),
            "marker_api": list(markers),
        },
    }
    return {"rocprofiler-sdk-tool": [process] * processes}


@pytest.fixture
def write(tmp_path):
    def written(name="4242_results.json", **parts):
        path = tmp_path / name
        text = json.dumps(document(**parts))
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return written


@pytest.mark.parametrize("name", ["4242_results.json", "4242_results.json.gz"])
def test_dispatches_kernels_and_agents(write, read, name):
    path = write(name, dispatches=[traced(2, 300, 400, stream=3), traced(1, 100, 150)])
    (trace,) = read(path)
    d, s = trace.dispatches, trace.shapes
    assert trace.role is TraceRole.TIMING
    assert d.dispatch_id.tolist() == [1, 2]
    assert d.correlation_id.tolist() == [11, 12]
    assert d.duration_ns().tolist() == [50, 100]
    assert [trace.streams[i].id for i in d.stream] == [0, 3]
    assert (s.grid.tolist(), s.workgroup.tolist()) == ([[256, 2, 1]], [[64, 1, 1]])
    assert (s.lds_bytes.tolist(), s.scratch_bytes.tolist()) == ([1024], [16])
    (kernel,) = trace.kernels
    assert (kernel.name, kernel.symbol, kernel.code_object) == ("add(float*)", "_Z3addPf", "file://app")
    assert (kernel.arch_vgpr, kernel.sgpr, kernel.static_lds_bytes) == (8, 16, 512)
    gpu = trace.agents[int(d.agent[0])]
    assert (gpu.index, gpu.architecture, gpu.chip_id, gpu.local_memory_bytes) == (2, "gfx942", 29857, 1000)
    (process,) = trace.processes
    assert (process.pid, process.command, process.begin_ns, process.end_ns) == (
        4242,
        "./app -n 3",
        50,
        10_000,
    )


def test_calls_and_their_arguments(write, read):
    calls = [
        call(1, 1, 11, 90, 95, stream="0x10", event="0x20", flags="2"),
        call(1, 2, 12, 96, 97, deviceId="3"),
        call(2, 0, 13, 98, 99),
    ]
    (trace,) = read(write(dispatches=[traced(1, 100, 150)], calls=calls))
    c = trace.api_calls
    assert [trace.api_functions[i] for i in c.function] == ["hipLaunchKernel", "hipSetDevice"]
    assert c.stream_handle.tolist() == [0x10, int(NO_HANDLE)]
    assert c.event_handle.tolist() == [0x20, int(NO_HANDLE)]
    assert (c.flags.tolist(), c.device.tolist()) == ([2, -1], [-1, 3])
    assert c.correlation_id.tolist() == [11, 12]


def test_calls_without_arguments_as_before_rocm_7(write, read):
    record = call(1, 1, 11, 90, 95)
    del record["args"]
    (trace,) = read(write(dispatches=[traced(1, 100, 150)], calls=[record]))
    assert trace.api_calls.stream_handle.tolist() == [int(NO_HANDLE)]


def test_ranges_of_roctx(write, read):
    def ranges(*markers):
        texts = [{"key": 11, "value": "step"}, {"key": 12, "value": "all </b>"}, {"key": 13, "value": 7}]
        (trace,) = read(write(dispatches=[traced(1, 100, 150)], markers=markers, texts=texts))
        return [(r.name, r.pid, r.thread_id, r.begin_ns, r.end_ns) for r in trace.extras.get("ranges", ())]

    newer = call(6, 1, 11, 5, 25), call(6, 2, 12, 0, 40), call(6, 1, 13, 8, 9)
    rest = call(5, 0, 14, 9, 9), call(5, 1, 11, 0, 400), call(7, 0, 15, 1, 2), {"kind": "x"}
    named = [("step", 4242, 7, 5, 25), ("all </b>", 4242, -1, 0, 40), ("roctxThreadRangeA", 4242, 7, 8, 9)]
    assert ranges(*rest, *newer) == named
    older = call(5, 1, 11, 5, 25), call(5, 2, 12, 0, 40), call(5, 0, 14, 9, 9), call(7, 0, 15, 1, 2)
    assert ranges(*older) == named[:2]
    assert ranges() == []


def test_copies(write, read):
    copy = {
        "kind": 4,
        "operation": 2,
        "correlation_id": {"internal": 9, "external": 0},
        "start_timestamp": 60,
        "end_timestamp": 70,
        "dst_agent_id": {"handle": GPU},
        "src_agent_id": {"handle": CPU},
        "bytes": 4096,
        "stream_id": {"handle": 3},
    }
    (trace,) = read(write(dispatches=[traced(1, 100, 150, stream=3)], copies=[copy]))
    c = trace.copies
    assert trace.copy_directions == ("MEMORY_COPY_HOST_TO_DEVICE",)
    assert (c.size_bytes.tolist(), c.correlation_id.tolist()) == ([4096], [9])
    assert [trace.agents[i].kind for i in (*c.source_agent, *c.destination_agent)] == ["CPU", "GPU"]
    assert c.stream.tolist() == trace.dispatches.stream.tolist()


def counted(number, begin, end, *readings):
    return {
        "thread_id": 7,
        "stream_id": {"handle": 0},
        "dispatch_data": data_of(number, begin, end),
        "records": [{"counter_id": {"handle": handle}, "value": value} for handle, value in readings],
    }


def test_counter_records_alone_give_dispatches_and_instances(write, read):
    (trace,) = read(write(counters=[counted(1, 100, 150, (71, 4.0), (72, 10.0), (72, 12.0))]))
    v = trace.counters
    assert trace.role is TraceRole.COUNTERS
    assert trace.counter_names == ("GRBM_COUNT", "SQ_WAVES")
    assert v.counter.tolist() == [0, 0, 1]
    assert v.instance.tolist() == [0, 1, -1]
    assert v.value.tolist() == [10.0, 12.0, 4.0]
    assert v.duration_ns.tolist() == [50, 50, 50]
    assert trace.dispatches.dispatch_id.tolist() == [1]


def test_counters_are_joined_to_traced_dispatches(write, read, codes):
    path = write(
        dispatches=[traced(1, 100, 150), traced(2, 200, 260)],
        counters=[counted(2, 200, 260, (71, 8.0)), counted(9, 300, 301, (71, 1.0))],
    )
    (trace,) = read(path)
    assert trace.dispatches.dispatch_id[trace.counters.dispatch].tolist() == [2]
    assert codes(trace)["counter.unknown_dispatch"] == 1


@pytest.mark.parametrize(
    "mutate",
    [
        lambda d: d.update(dispatch_info=None),
        lambda d: d.update(dispatch_info=[1, 2]),
        lambda d: d.update(start_timestamp="soon"),
        lambda d: d.update(end_timestamp=1 << 80),
        lambda d: d.update(start_timestamp=None),
    ],
)
def test_records_of_other_types_never_crash(write, read, mutate):
    record = traced(1, 100, 150)
    mutate(record)
    (trace,) = read(write(dispatches=[record, traced(2, 200, 260)]))
    assert 2 in trace.dispatches.dispatch_id.tolist()


def test_a_signal_ends_it_at_the_record_that_is_read(write, read):
    """One record is the longest piece of work, and 8 MiB are the longest record."""
    decoded = []

    def interrupt_the_third(frame, event, _argument):
        if event == "call" and frame.f_code.co_name == "raw_decode":
            decoded.append(frame)
            if len(decoded) == 3:
                signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    path = write()
    try:
        sys.setprofile(interrupt_the_third)
        with pytest.raises(KeyboardInterrupt):
            read(path)
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGINT, before)
    assert len(decoded) == 3


def test_only_integers_of_64_bits_are_numbers():
    rows = NumberRows(("first", "second"))
    for row in ((1, -(1 << 63)), (True, 5), (1 << 63, 6), (7, -(1 << 63) - 1), (1.0, "8"), (None, [])):
        rows.add(row)
    assert rows.column("first").tolist() == [1, -1, -1, 7, -1, -1]
    assert rows.column("second").tolist() == [-(1 << 63), 5, 6, -1, -1, -1]


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.95])
def test_a_cut_file_is_one_clear_line(write, cut):
    path = write(dispatches=[traced(i, 100 * i, 100 * i + 50) for i in range(1, 50)])
    text = path.read_text()
    path.write_text(text[: int(len(text) * cut)])
    (found,) = JsonReader().claim([path])
    with pytest.raises(BadDataError, match="can't be read as JSON"):
        JsonReader().read(found)


def test_several_processes_in_one_file_are_refused(write):
    path = write(dispatches=[traced(1, 100, 150)], processes=2)
    (found,) = JsonReader().claim([path])
    with pytest.raises(BadDataError, match="holds 2 processes"):
        JsonReader().read(found)


def test_what_records_mean_may_stand_behind_them(tmp_path, read):
    content = document(
        dispatches=[traced(1, 100, 150)],
        calls=[call(1, 1, 11, 90, 95)],
        counters=[counted(1, 100, 150, (71, 4.0))],
    )
    (process,) = content["rocprofiler-sdk-tool"]
    path = tmp_path / "1_results.json"
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [dict(reversed(process.items()))]}))
    (trace,) = read(path)
    assert [kernel.name for kernel in trace.kernels] == ["add(float*)"]
    assert trace.agents[int(trace.dispatches.agent[0])].product == "MI300X"
    assert trace.api_functions == ("hipLaunchKernel",)
    assert [trace.counter_names[i] for i in trace.counters.counter] == ["SQ_WAVES"]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 61])
def test_values_are_whole_wherever_the_file_is_cut_into_pieces(write, monkeypatch, count):
    path = write(
        dispatches=[traced(1, 100, 150)], counters=[counted(1, 100, 150, (71, -1.25e-3), (72, 12.5e2))]
    )
    whole = list(records.entries(path))
    monkeypatch.setattr(records, "_READ_BYTES", count)
    assert list(records.entries(path)) == whole


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"pid": 1', "it ends at character"),
        ("NaN", "NaN is no JSON"),
        ("1} x", "at character"),
        ('"\x01"', "control character"),
        ("1}]} {", "the end of the file"),
    ],
)
def test_what_is_no_json_says_why(tmp_path, text, reason):
    path = tmp_path / "1_results.json"
    path.write_text('{"rocprofiler-sdk-tool": [{"metadata": ' + text)
    with pytest.raises(BadDataError, match=f"can't be read as JSON.*{reason}"):
        list(records.entries(path))


def test_half_a_surrogate_pair_never_reaches_a_document(tmp_path):
    path = tmp_path / "1_results.json"
    path.write_text(r'{"rocprofiler-sdk-tool": [{"metadata": {"command": ["a\ud800", "\ud83d\ude00"]}}]}')
    assert list(records.entries(path)) == [("metadata", {"command": ["a?", "\U0001f600"]})]


MEASURE = """
import sys
from pathlib import Path
from rpl_rocprofv3.readers import json as records
from rpl_rocprofv3.readers.json.work import NumberRows
from rpl_rocprofv3.readers.catalog import JsonReader
reader = JsonReader()
(trace,) = reader.read(reader.claim([Path(sys.argv[1])])[0])
# VmHWM is the peak of this program alone; ru_maxrss would include the parent before exec.
(peak,) = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line]
print(len(trace.dispatches), peak)
"""


def test_memory_stays_far_below_the_size_of_the_file(tmp_path):
    head, tail = json.dumps(document(dispatches=["@"])).split('"@"')
    path = tmp_path / "big_results.json"
    # Padding makes the records as long as those of releases with many more fields.
    record = json.dumps({**traced(1, 100, 150), "padding": "x" * 6000})
    with path.open("w") as file:
        file.write(head + ",\n".join(record for _ in range(20_000)) + tail)
    assert path.stat().st_size > 120_000_000
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True, timeout=200
    )
    count, peak_kib = map(int, run.stdout.split())
    assert count == 20_000
    assert peak_kib * 1024 < 100_000_000


def test_processes_in_files_of_their_own_become_one_trace(write, read, tmp_path):
    write("1_results.json", dispatches=[traced(1, 100, 150)])
    second = document(dispatches=[traced(1, 120, 180)])
    second["rocprofiler-sdk-tool"][0]["metadata"].update(pid=5000, init_time=60)
    (tmp_path / "2_results.json").write_text(json.dumps(second))
    (trace,) = read(tmp_path)
    assert [p.pid for p in trace.processes] == [4242, 5000]
    assert trace.dispatches.begin_ns.tolist() == [100, 120]


def test_repeated_runs_in_one_folder_stay_apart(write, claim, tmp_path):
    write("1_results.json", dispatches=[traced(1, 100, 150)])
    write("2_results.json", dispatches=[traced(1, 100, 150)])
    assert [len(found.paths) for found in claim(tmp_path)] == [1, 1]


def test_an_empty_file_is_refused_by_name(tmp_path, claim):
    (tmp_path / "7_results.json").write_text("")
    (found,) = claim(tmp_path)
    assert "0 bytes" in found.refusal


@pytest.mark.parametrize("operation", [3, 4, -1])
def test_calls_of_a_number_without_a_name_are_kept_as_unknown(write, read, operation):
    calls = [call(1, 1, 11, 1000, 1010), call(1, operation, 12, 1020, 1030)]
    (trace,) = read(write(dispatches=[traced(1, 1100, 1200)], calls=calls))
    names = [trace.api_functions[number] for number in trace.api_calls.function.tolist()]
    assert names == ["hipLaunchKernel", "unknown"]


def replayed(number, replay, values, kernel=1):
    """A record of one replay of a launch: (counter handle, value) per hardware instance."""
    return {
        "thread_id": 7,
        "dispatch_data": data_of(number, 100, 200, kernel=kernel),
        "records": [{"counter_id": {"handle": handle}, "value": value} for handle, value in values],
        "stream_id": {"handle": 0},
        **({} if replay is None else {"replay_pass": replay}),
    }


def test_a_counter_of_several_replays_counts_once(write, read, codes):
    """Waves stand in both groups, as a check of the replays: two instances each, never four."""
    first = [(71, 5.0), (71, 3.0)]
    second = [(71, 5.0), (71, 3.0), (72, 640.0)]
    path = write(counters=[replayed(1, 0, first), replayed(1, 1, second)])
    (trace,) = read(path)
    assert len(trace.dispatches) == 1
    sums = {}
    for counter, value in zip(trace.counters.counter.tolist(), trace.counters.value.tolist(), strict=True):
        name = trace.counter_names[counter]
        sums[name] = sums.get(name, 0.0) + value
    assert sums == {"SQ_WAVES": 8.0, "GRBM_COUNT": 640.0}
    assert "counter.replays_disagree" not in codes(trace)


def test_replays_that_count_other_work_are_told(write, read, codes):
    path = write(counters=[replayed(1, 0, [(72, 100.0)]), replayed(1, 1, [(72, 300.0)])])
    (trace,) = read(path)
    assert codes(trace)["counter.replays_disagree"] == 1
    assert trace.counters.value.tolist() == [100.0]


def test_launches_that_were_not_replayed_are_told_by_kernel(write, read, codes):
    records = [replayed(1, 0, [(71, 8.0)]), replayed(1, 1, [(72, 1.0)]), replayed(2, 0, [(71, 8.0)])]
    (trace,) = read(write(counters=records))
    assert len(trace.dispatches) == 2
    (told,) = [d for d in trace.diagnostics if d.code == "counter.not_replayed"]
    assert told.count == 1
    assert "add" in told.fact
