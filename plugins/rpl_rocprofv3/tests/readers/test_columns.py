"""Look-ups and launch shapes against their plain-Python meaning."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace

import attrs
import numpy as np
import pytest

from rpl_rocprofv3.readers import columns
from rpl_rocprofv3.readers.columns import (
    Geometry,
    display_name,
    distinct_ids,
    distinct_shapes,
    flat_geometry,
    handle_value,
    handle_values,
    mixed_key,
    number_values,
    positions,
)
from rpl_rocprofv3.readers.csv import CsvCounters
from rpl_rocprofv3.readers.trace import architecture_of_version, check_waves
from rpl_rocprofv3.readers.trace.tables import Findings, time_order
from rpl_testkit.traces import TracedDispatch, make_trace

KEYS = {
    "none": [],
    "consecutive": [5, 6, 7, 8],
    "small": [9, 3, 100, -4],
    "huge": [1 << 62, -(1 << 63), 0, 7],
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_positions_are_indices_of_known_ids(keys, kind):
    info = np.iinfo(kind)
    ids = [0, 3, 4, 5, 7, 8, 9, 10, -1, -4, 100, 101, int(info.min), int(info.max)]
    ids += [k for k in keys if info.min <= k <= info.max]
    expected = [keys.index(i) if i in keys else -1 for i in ids]
    assert positions(np.array(ids, kind), keys).tolist() == expected


def test_one_id_for_all_rows_costs_no_memory_per_row():
    found = positions(np.broadcast_to(np.int64(7), 2), [5, 7])
    assert (found.tolist(), found.strides) == ([1, 1], (0,))


def test_keys_of_other_rows_are_other_keys():
    """Equal ones would be told apart all the same, row by row and slowly."""
    rows = [np.array([1, 2, 1, 2], np.int64), np.array([1, 1, 2, 2], np.int64)]
    assert len(set(mixed_key(rows).tolist())) == 4


@pytest.mark.parametrize(
    ("version", "name"),
    [(90402, "gfx942"), (90010, "gfx90a"), (110003, "gfx1103"), (120001, "gfx1201"), (0, None), (None, None)],
)
def test_versions_are_decimal_and_names_end_in_hex(version, name):
    """docs/reference/formats.md, 2.6: major, minor and stepping, the last two in hex."""
    assert architecture_of_version(version) == name


def test_the_process_of_a_counter_table_is_that_of_its_first_row():
    columns = SimpleNamespace(integer={"Process_Id": np.array([7, 8], np.int64)}.__getitem__)
    assert CsvCounters(columns=columns, names=(), first_rows=np.zeros(0, np.int64)).pid == 7


@pytest.mark.parametrize("values", [[], [3, 1, 3], [1 << 62, -5, 1 << 62]])
def test_distinct_ids_are_sorted(values):
    assert distinct_ids(np.array(values, np.int64)).tolist() == sorted(set(values))


def geometry_of(rows):
    columns = [np.array(c, np.int64) for c in zip(*rows, strict=True)]
    return Geometry(tuple(columns[:3]), tuple(columns[3:6]), columns[6], columns[7])


@pytest.mark.parametrize("shapes", [1, 5, 300])
def test_every_row_finds_exactly_its_own_shape(shapes):
    rnd = random.Random(shapes)
    known = [tuple(rnd.randrange(1, 1 << 20) for _ in range(8)) for _ in range(shapes)]
    rows = [rnd.choice(known) for _ in range(2000)]
    found, index, impossible = distinct_shapes(geometry_of(rows))
    table = np.column_stack((found.workgroup, found.grid, found.lds_bytes, found.scratch_bytes))
    assert [tuple(r) for r in table[index].tolist()] == rows
    assert [tuple(r) for r in table.tolist()] == sorted(set(rows))
    assert impossible == 0


def test_colliding_mixes_are_told_apart(monkeypatch):
    monkeypatch.setattr(columns, "_MULTIPLIERS", (0,) * 8)
    rows = [(64, 1, 1, 256, 1, 1, 0, 0), (64, 1, 1, 512, 1, 1, 0, 0), (64, 1, 1, 256, 1, 1, 0, 0)]
    found, index, _ = distinct_shapes(geometry_of(rows))
    assert found.grid[index, 0].tolist() == [256, 512, 256]


def test_impossible_sizes_become_unknown_and_merge():
    rows = [
        (64, 1, 1, 256, 1, 1, 0, 0),
        (64, 1, 1, -3, 1, 1, 0, 0),
        (0, 1, 1, 256, 1, 1, 0, 0),
        (64, 1, 1, 1 << 32, 1, 1, 0, 0),
        (64, 1, 1, (1 << 32) - 1, (1 << 32) - 1, 1 << 20, 0, 0),
        (-1, -1, -1, -1, -1, -1, -1, -1),
        (64, 1, 1, 256, 1, 1, -9, 0),
    ]
    found, index, impossible = distinct_shapes(geometry_of(rows))
    assert impossible == 4
    assert found.grid[index, 0].tolist() == [256, -1, -1, -1, -1, -1, 256]
    assert found.lds_bytes[index].tolist() == [0, 0, 0, 0, 0, -1, -1]


def test_no_dispatch_has_no_shape():
    empty = np.empty(0, np.int64)
    found, index, _ = distinct_shapes(flat_geometry(empty, empty, empty, empty))
    assert (len(found), len(index)) == (0, 0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x55d0c0a01000", 0x55D0C0A01000),
        ("0xFFFFFFFFFFFFFFFE", 0xFFFFFFFFFFFFFFFE),
        ("nullptr", 0),
        ("(nil)", 0),
        ("", 0),
        ("12", 12),
        ("0xFFFFFFFFFFFFFFFF", None),
        ("-5", None),
        ("0x" + "f" * 40, None),
        ("{x=1}", None),
        (None, None),
        (7, 7),
    ],
)
def test_pointers_in_texts(text, value):
    assert handle_value(text) == value
    assert int(handle_values([text])[0]) == (0xFFFFFFFFFFFFFFFF if value is None else value)


def test_numbers_in_texts():
    assert number_values(["3", "0x10", "x", None, "-2", str(1 << 63)]).tolist() == [3, 16, -1, -1, -1, -1]


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("k(int) (.kd)", "k(int)"),
        ("k(int) [clone .kd]", "k(int)"),
        ("_Z1kv.kd", "_Z1kv"),
        ("plain", "plain"),
        (".kd", ".kd"),
    ],
)
def test_names_lose_only_their_descriptor_suffix(recorded, shown):
    assert display_name(recorded) == shown


@pytest.mark.parametrize("distinct", [1, 3, 1000])
def test_time_order_is_that_of_all_four_keys(distinct):
    rng = np.random.default_rng(distinct)
    begin, end, process, number = (rng.integers(0, high, 500) for high in (distinct, 3, 2, 40))
    keep = rng.random(500) < 0.9
    expected = np.lexsort((number, process, end, begin))
    assert time_order(np.ones(500, np.bool_), begin, end, process, number).tolist() == expected.tolist()
    kept = time_order(keep, begin, end, process, number)
    assert kept.tolist() == expected[keep[expected]].tolist()


def test_rows_in_order_need_no_selection():
    begin = np.array([1, 2, 3])
    assert time_order(np.ones(3, np.bool_), begin, begin, begin, begin) is None


@pytest.mark.parametrize(
    ("workgroup", "grid", "waves", "agent", "reported"),
    [
        (64, 256, 4, 0, 0),  # four workgroups of one wave
        (64, 256, 8, 0, 1),
        (1, 4, 4, 0, 0),  # four workgroups of one thread are four waves too
        (1, 4, 8, 0, 1),
        (64, 64, 128, -1, 0),  # on a GPU that is not known, a wave may be of any size
    ],
)
def test_waves_beyond_those_of_the_launch_were_added_up(workgroup, grid, waves, agent, reported):
    row = TracedDispatch(
        "k", 0, 10, workgroup=(workgroup, 1, 1), grid=(grid, 1, 1), counters={"SQ_WAVES": float(waves)}
    )
    trace = make_trace([row])
    rows = attrs.evolve(trace.dispatches, agent=np.full(1, agent, np.int32))
    findings = Findings(Path("x"))
    check_waves(attrs.evolve(trace, dispatches=rows), findings)
    assert [found.count for found in findings.diagnostics()] == [1] * reported


def test_one_finding_is_told_in_the_singular():
    findings = Findings(Path("x"))
    for count in (0, 1, 2):
        findings.add("k.c", count, "row ends before it begins", "rows end before they begin")
    facts = [found.fact for found in findings.diagnostics()]
    assert facts == ["1 row ends before it begins", "2 rows end before they begin"]
