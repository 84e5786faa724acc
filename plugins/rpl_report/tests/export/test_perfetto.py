"""``rpl export --format perfetto``, read back with the perfetto package's own messages."""

from __future__ import annotations

import json
from collections import defaultdict

import attrs
import numpy as np
import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

from rpl_analysis.counters.join import counters_by_dispatch
from rpl_core.model.recording import Recording
from rpl_core.model.trace import RANGES, HostRange
from rpl_report.perfetto import placeholder, stamp_messages, to_perfetto, varint_width
from rpl_report.rows import ExportedRun
from rpl_report.timeline.lanes import timed_work
from rpl_testkit.traces import TracedDispatch, make_trace


class Read:
    """Tracks and slices of a trace, with nesting checked while reading."""

    def __init__(self, content: bytes) -> None:
        trace = messages.Trace()
        trace.ParseFromString(content)
        self.tracks, self.slices, self.flows = {}, defaultdict(list), defaultdict(list)
        self.counters = defaultdict(list)
        names: dict[int, str] = {}
        open_slices: dict[int, list] = defaultdict(list)
        last = 0
        for packet in trace.packet:
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            for name in packet.interned_data.event_names:
                names[name.iid] = name.name
            if not packet.HasField("track_event"):
                continue
            event = packet.track_event
            assert packet.timestamp >= last, "packets in time order"
            last = packet.timestamp
            assert event.track_uuid in self.tracks
            if event.type == messages.TrackEvent.TYPE_COUNTER:
                name = self.tracks[event.track_uuid].name
                self.counters[name].append((packet.timestamp, event.double_counter_value))
            elif event.type == messages.TrackEvent.TYPE_SLICE_BEGIN:
                open_slices[event.track_uuid].append((names[event.name_iid], packet.timestamp, event))
            else:
                assert event.type == messages.TrackEvent.TYPE_SLICE_END
                name, begin, opened = open_slices[event.track_uuid].pop()
                assert not open_slices[event.track_uuid], "no slice inside another one"
                self.slices[event.track_uuid].append((name, begin, packet.timestamp, opened))
                for flow in opened.flow_ids:
                    self.flows[flow].append(self.tracks[event.track_uuid].name)
        assert not any(open_slices.values())

    def named(self, part: str) -> list[tuple]:
        """Slices of all tracks with ``part`` in their name."""
        return [
            each for uuid, slices in self.slices.items() if part in self.tracks[uuid].name for each in slices
        ]


@pytest.fixture(scope="module")
def exported(demo_run, tmp_path_factory):
    target = tmp_path_factory.mktemp("perfetto") / "run.pftrace"
    from rpl_core.cli.main import run

    assert run(["export", "--format", "perfetto", "-o", str(target), str(demo_run)]) == 0
    return Read(target.read_bytes())


def test_streams_hold_the_recorded_slices(exported, recorded_work):
    found = sorted((begin, end, name) for name, begin, end, _ in exported.named("stream"))
    assert found == sorted((begin, end, name) for name, begin, end, _ in recorded_work)


def test_tracks_belong_to_their_process_and_thread(exported, recorded):
    (pid,) = {row[0] for row in recorded("SELECT pid FROM processes")}
    processes = [t for t in exported.tracks.values() if t.HasField("process")]
    assert [t.process.pid for t in processes] == [pid]
    children = [t for t in exported.tracks.values() if t.parent_uuid == processes[0].uuid]
    assert len([t for t in children if "stream" in t.name]) == 4
    threads = [t for t in children if t.HasField("thread")]
    assert [t.thread.pid for t in threads] == [pid]


def test_host_threads_hold_the_api_calls(exported, recorded):
    calls = recorded("SELECT name, start, end FROM regions WHERE category LIKE 'HIP%'")
    found = sorted((begin, end, name) for name, begin, end, _ in exported.named("HIP calls"))
    assert found == sorted((begin, end, name) for name, begin, end in calls)


def test_critical_path_is_a_track_of_its_own(exported, demo_run):
    dag = json.loads((demo_run / "dag.json").read_text())
    path = exported.named("Critical path")
    assert sum(end - begin for _, begin, end, _ in path) == dag["critical_path_ns"]
    assert len(path) == sum(segment["nodes"] for segment in dag["segments"])


def test_slices_carry_slack_and_path(exported, demo_run):
    dag = json.loads((demo_run / "dag.json").read_text())
    slack = defaultdict(list)
    for name, _, _, event in exported.named("stream"):
        values = {a.name_iid: a.uint_value for a in event.debug_annotations}
        slack[name].append(values[2])
        assert values[3] in (0, 1)
        assert values[3] == 0 or values[2] == 0
    for symbol in dag["symbols"]:
        assert min(slack[symbol["name"]]) == symbol["min_slack_ns"]


def test_flows_join_a_launch_with_what_it_launched(exported):
    joined = [sorted(tracks) for tracks in exported.flows.values() if len(tracks) > 1]
    assert joined
    for tracks in joined:
        assert tracks[-1].startswith("HIP calls")
        assert all(track.startswith("GPU") for track in tracks[:-1])


def test_touching_and_empty_slices_keep_their_order(rpl_make_rocpd, rpl_cli, tmp_path):
    recording = rpl_make_rocpd([("a", 100, 200), ("b", 200, 200), ("c", 200, 300), ("d", 300, 301)])
    rpl_cli("export", "--format", "perfetto", "-o", tmp_path / "t", recording).assert_ok()
    found = Read((tmp_path / "t").read_bytes()).named("stream")
    assert sorted((begin, end) for _, begin, end, _ in found) == [
        (100, 200),
        (200, 200),
        (200, 300),
        (300, 301),
    ]


def test_overlapping_slices_get_tracks_of_their_own(rpl_make_rocpd, rpl_cli, tmp_path):
    recording = rpl_make_rocpd([("a", 100, 500), ("b", 200, 300), ("c", 250, 700)])
    rpl_cli("export", "--format", "perfetto", "-o", tmp_path / "t", recording).assert_ok()
    read = Read((tmp_path / "t").read_bytes())
    assert sorted(t.name for t in read.tracks.values() if "overlapping" in t.name) == [
        "GPU 2 · stream 0 (overlapping 1)",
        "GPU 2 · stream 0 (overlapping 2)",
    ]


@pytest.mark.parametrize("name", ["</script>", "\x1b[0m", "n" * 2048])
def test_any_name_is_kept_without_control_characters(name, rpl_make_rocpd, rpl_cli, tmp_path):
    recording = rpl_make_rocpd([(name, 100, 200)])
    rpl_cli("export", "--format", "perfetto", "-o", tmp_path / "t", recording).assert_ok()
    found = {each[0] for each in Read((tmp_path / "t").read_bytes()).named("stream")}
    assert found == {name.replace("\x1b", "\\x1b")}


def test_the_same_recording_gives_the_same_bytes(demo_run, rpl_cli, tmp_path):
    for name in ("one", "two"):
        rpl_cli("export", "--format", "perfetto", "-o", tmp_path / name, demo_run).assert_ok()
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("largest", [0, 127, 128, 2**31, 2**56 - 1, 2**56, 2**63 - 1])
def test_stamped_numbers_are_read_back(largest):
    width = varint_width(largest)
    packet = messages.TracePacket()
    packet.timestamp = placeholder(width, 1)
    values = np.array([0, largest // 2, largest], dtype=np.int64)
    stamped = stamp_messages(packet, {(width, 1): values})
    assert len(stamped) == 3
    for row, value in zip(stamped, values.tolist(), strict=True):
        read = messages.TracePacket()
        read.ParseFromString(row.tobytes())
        assert read.timestamp == value


@pytest.mark.parametrize("count", [1, 40, 130, 400])
def test_any_number_of_streams_and_kernels_can_be_stamped(count):
    """Widths of placeholders depend on the largest values, and none may be taken for another one."""
    trace = make_trace([TracedDispatch(f"k{i}", 10 * i, 10 * i + 5, stream=i + 1) for i in range(count)])
    read = Read(to_perfetto(timed_work(trace)))
    assert sorted(each[0] for each in read.named("stream")) == sorted(f"k{i}" for i in range(count))


def test_a_placeholder_that_is_not_there_is_an_error():
    packet = messages.TracePacket()
    packet.timestamp = 5
    with pytest.raises(ValueError, match="occurs 0 times"):
        stamp_messages(packet, {(3, 1): np.array([1])})


def test_counters_of_the_passes_are_steps_beside_the_slices():
    counted = make_trace(
        [
            TracedDispatch("a", 0, 900, counters={"SQ_WAVES": 1024.0, "TCC_HIT": 0.5}),
            TracedDispatch("b", 1000, 9000, counters={"SQ_WAVES": 1024.0}),
            TracedDispatch("a", 9000, 9900, counters={"SQ_WAVES": 1024.0, "TCC_HIT": 4e15}),
        ]
    )
    timed = make_trace(
        [
            TracedDispatch("a", 100, 200),
            TracedDispatch("b", 150, 250, stream=1, queue=2),
            TracedDispatch("a", 300, 400),
            TracedDispatch("a", 500, 600),  # no pass saw a third one
        ]
    )
    run = ExportedRun(timed_work(timed), Recording((timed, counted)))
    found = Read(to_perfetto(run.work, run.counters())).counters
    assert found == {
        "SQ_WAVES (counter passes)": [
            *((100, 1024.0), (150, 2048.0), (200, 1024.0), (250, 0.0)),
            *((300, 1024.0), (400, 0.0)),
        ],
        "TCC_HIT (counter passes)": [(100, 0.5), (200, 0.0), (300, 4e15), (400, 0.0)],
    }


def test_a_dispatch_of_another_geometry_has_no_counters():
    counted = make_trace([TracedDispatch("a", 0, 900, grid=(512, 1, 1), counters={"TCC_HIT": 1.0})])
    timed = make_trace([TracedDispatch("a", 100, 200)])
    assert np.isnan(counters_by_dispatch(Recording((timed, counted)), timed)["TCC_HIT"]).all()


def test_counters_are_children_of_their_process_and_change_no_slice(exported, recorded_work):
    tracks = [t for t in exported.tracks.values() if t.HasField("counter")]
    (process,) = [t.uuid for t in exported.tracks.values() if t.HasField("process")]
    assert {t.parent_uuid for t in tracks} == {process}
    assert "SQ_WAVES (counter passes)" in {t.name for t in tracks}
    assert len(exported.counters["SQ_WAVES (counter passes)"]) > len(recorded_work) // 2


def test_too_many_steps_leave_counters_out_and_say_so(monkeypatch):
    monkeypatch.setattr("rpl_report.perfetto.MOST_STEPS", 3)
    timed = make_trace([TracedDispatch("a", 100, 200)])
    content = Read(to_perfetto(timed_work(timed), {name: np.ones(1) for name in "XYZ"}))
    assert list(content.counters) == ["X (counter passes)"]
    assert any(t.name.startswith("2 more counters left out") for t in content.tracks.values())


def test_idle_time_of_each_gpu_is_cut_by_cause_and_lies_between_its_work(exported, demo_run):
    dag = json.loads((demo_run / "dag.json").read_text())
    (device,) = dag["devices"]
    idle = exported.named("· idle")
    spent = {f"idle: {cause[:-3]}": ns for cause, ns in device["idle"].items() if ns}
    assert {name: sum(e - b for n, b, e, _ in idle if n == name) for name, *_ in idle} == spent
    work = sorted((begin, end) for _, begin, end, _ in exported.named("stream"))
    gaps, reached = [], work[0][1]
    for begin, end in work:
        if begin > reached:
            gaps.append((reached, begin))
        reached = max(reached, end)
    cuts = sorted((begin, end) for _, begin, end, _ in idle)
    joined = [cuts[0]]
    for begin, end in cuts[1:]:
        joined[-1:] = [(joined[-1][0], end)] if begin == joined[-1][1] else [joined[-1], (begin, end)]
    assert joined == gaps


def test_processes_of_several_ranks_say_which_they_are():
    rows = [TracedDispatch("a", 100 * i, 100 * i + 50, process=i % 2) for i in range(6)]
    trace = make_trace(rows, machines=("node", "node"))
    read = Read(to_perfetto(timed_work(trace, with_idle=True)))
    named = {t.process.pid: t.process.process_name for t in read.tracks.values() if t.HasField("process")}
    assert named == {100: "rank 0", 101: "rank 1"}
    (idle,) = (t for t in read.tracks.values() if "idle" in t.name)
    assert not idle.HasField("parent_uuid"), "the GPU belongs to both"


def test_ranges_are_tracks_of_their_thread():
    trace = make_trace([("a", 100, 200), ("b", 300, 400)])
    marked = (HostRange("outer", "guid-0", 100, 7, 50, 450), HostRange("in", "guid-0", 100, 7, 60, 90))
    read = Read(to_perfetto(timed_work(attrs.evolve(trace, extras={RANGES: marked}))))
    assert [each[:3] for each in read.named("ranges of thread 7 (inside 1)")] == [("in", 60, 90)]
    found = {t.name: s[0][:3] for uuid, s in read.slices.items() if "ranges" in (t := read.tracks[uuid]).name}
    assert found["ranges of thread 7"] == ("outer", 50, 450)
