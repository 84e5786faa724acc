"""The levels of the timeline against sums over every node, one by one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rpl_analysis.execution_graph.build import execution_graph
from rpl_report.timeline import NO_SYMBOL, build
from rpl_report.timeline.build import timeline_of
from rpl_testkit.traces import TracedDispatch, make_trace

RUNS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 5000), st.integers(0, 900), st.integers(0, 3)),
    min_size=1,
    max_size=40,
)


def _trace(rows):
    return make_trace([TracedDispatch(k, begin, begin + length, stream=s) for k, begin, length, s in rows])


def _covered(intervals, low, high):
    """Time in [low, high) that the intervals cover, overlap counted once."""
    reached, total = low, 0
    for begin, end in sorted(intervals):
        begin, end = max(begin, reached, low), min(end, high)
        if end > begin:
            total += end - begin
            reached = end
    return total


@settings(max_examples=60, deadline=None)
@given(RUNS)
def test_every_bin_of_every_level_says_what_its_nodes_do(rows):
    timeline = timeline_of(_trace(rows))
    origin = min(begin for _, begin, _, _ in rows)
    for level in timeline.levels:
        assert level.count.sum() == len(rows)
        for number, lane in enumerate(timeline.lanes):
            own = [(b - origin, b - origin + length) for _, b, length, s in rows if s == lane.id]
            assert level.count[number].sum() == len(own)
            for bin_number in range(level.bins):
                low = bin_number * level.width_ns
                exact = _covered(own, low, low + level.width_ns) / level.width_ns
                shown = int(level.busy[number, bin_number])
                assert (shown == 0) == (exact == 0)
                assert shown / 255 == pytest.approx(exact, abs=1 / 255)
                assert (level.symbol[number, bin_number] == NO_SYMBOL) == (exact == 0)


@settings(max_examples=40, deadline=None)
@given(RUNS)
def test_path_and_slack_are_those_of_the_graph(rows):
    trace = _trace(rows)
    timeline, graph = timeline_of(trace), execution_graph(trace, 0, include_copies=True)
    assume(graph.reason is None)
    assert timeline.critical_path_ns == graph.critical_path_ns
    assert int(timeline.kept.duration_ns[timeline.kept.on_path].sum()) == pytest.approx(
        graph.critical_path_ns, abs=1000 * len(rows)
    )
    by_symbol = {symbol.name: symbol.min_slack_ns for symbol in graph.symbols}
    for number, symbol in enumerate(timeline.symbols):
        own = timeline.kept.slack_ns[timeline.kept.symbol == number]
        assert int(own.min()) == by_symbol[symbol.name]


def test_dominant_symbol_is_the_one_with_most_time_in_the_bin():
    rows = [("short", 0, 100, 0), ("long", 100, 5000, 0), ("short", 5200, 100, 0)]
    timeline = timeline_of(_trace(rows))
    coarse = timeline.levels[-1]
    names = [timeline.symbols[i].name for i in coarse.symbol[0] if i != NO_SYMBOL]
    assert names[len(names) // 2] == "long"
    assert timeline.symbols[0].name == "long"


def test_few_nodes_are_all_kept_in_order():
    timeline = timeline_of(_trace([("a", 10, 5, 1), ("b", 0, 5, 1), ("a", 3, 9, 0)]))
    assert timeline.complete
    assert len(timeline.kept) == 3
    lane_begin = list(zip(timeline.kept.lane.tolist(), timeline.kept.begin_ns.tolist(), strict=True))
    assert lane_begin == sorted(lane_begin)


def test_many_nodes_keep_the_longest_those_of_the_path_and_some_of_each_kernel(monkeypatch):
    monkeypatch.setattr(build, "LONGEST_OF_ALL", 10)
    monkeypatch.setattr(build, "LONGEST_ON_PATH", 5)
    monkeypatch.setattr(build, "LONGEST_PER_SYMBOL", 2)
    rows = [(f"k{i % 4}", 100 * i, 10 + (i * 7) % 83 + 200 * (i % 4 == 0), i % 2) for i in range(200)]
    timeline = timeline_of(_trace(rows))
    assert not timeline.complete
    lengths = sorted((length for _, _, length, _ in rows), reverse=True)
    found = sorted(timeline.kept.duration_ns.tolist(), reverse=True)
    assert found[:10] == lengths[:10]
    assert len(found) <= 10 + 5 + 2 * 4 + 2
    assert all((timeline.kept.symbol == number).sum() >= 2 for number in range(4))


def test_links_lead_from_lane_to_lane_in_time_order(demo_report, parsed):
    timeline = json.loads(parsed(demo_report).by_id("timeline-data").text)
    assert timeline["links"]["from"]


def test_links_beyond_the_limit_are_counted(monkeypatch):
    monkeypatch.setattr(build, "_MOST_LINKS", 1)
    # Null-stream work waits for both blocking streams and they for it, so the path must change lanes.
    rows = [("a", 0, 90, 1), ("b", 100, 90, 2), ("c", 200, 90, 1), ("d", 300, 90, 2)]
    timeline = timeline_of(_trace(rows))
    assert len(timeline.links) <= 1
    assert len(timeline.links) + timeline.links.left_out == sum(
        1 for a, b in zip(_path_lanes(timeline), _path_lanes(timeline)[1:], strict=False) if a != b
    )


def _path_lanes(timeline):
    chosen = timeline.kept.on_path
    order = np.argsort(timeline.kept.begin_ns[chosen])
    return timeline.kept.lane[chosen][order].tolist()


def test_more_lanes_than_fit_are_counted():
    rows = [("k", 10 * i, 5 + i % 7, i) for i in range(120)]
    timeline = timeline_of(_trace(rows))
    assert len(timeline.lanes) == 48
    assert timeline.lanes_left_out == 72
    assert timeline.nodes_left_out == 72
    assert timeline.nodes == 120


@pytest.mark.parametrize("length", [0, 1, 10**16])
def test_extreme_spans_are_held(length):
    timeline = timeline_of(make_trace([("a", 5, 5 + length), ("a", 10**17, 10**17 + 3)]))
    assert timeline.span_ns == 10**17 + 3 - 5
    assert all(level.bins * level.width_ns >= timeline.span_ns for level in timeline.levels)
    assert sum(int(level.count.sum()) for level in timeline.levels) == 2 * len(timeline.levels)


def test_zero_length_everywhere_is_held():
    timeline = timeline_of(make_trace([("a", 5, 5), ("b", 5, 5)]))
    assert timeline.span_ns == 0
    assert timeline.levels[0].busy.sum() == 0


def test_machines_begin_at_zero_each():
    rows = [TracedDispatch("a", 10**9, 10**9 + 5), TracedDispatch("a", 7, 12, process=1)]
    timeline = timeline_of(make_trace(rows, machines=("one", "two")))
    assert timeline.machines == 2
    assert timeline.kept.begin_ns.tolist() == [0, 0]
    assert timeline.span_ns == 5


def test_cells_stay_within_the_limit():
    rows = [("k", 10 * i, 9, i % 48) for i in range(60_000)]
    timeline = timeline_of(_trace(rows))
    assert timeline.levels[0].busy.size <= max(build.MOST_CELLS, 48 * 1024) + 48 * 1024
