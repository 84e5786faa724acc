"""``rpl export``: what it takes, what it refuses, kernel graphs."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET

import pytest

from rpl_report.rows import COLUMNS
from rpl_report.timeline.lanes import split_overlaps


def test_graphml_holds_the_kernels_and_dependencies_of_the_document(demo_run, rpl_cli):
    dag = json.loads((demo_run / "dag.json").read_text())
    root = ET.fromstring(rpl_cli("export", "--format", "graphml", demo_run).assert_ok().stdout)
    space = "{http://graphml.graphdrawing.org/xmlns}"
    assert {node.get("id") for node in root.iter(f"{space}node")} == {s["name"] for s in dag["symbols"]}
    assert len(list(root.iter(f"{space}edge"))) == len(dag["symbol_edges"])


def test_dot_of_a_file_is_that_of_its_documents(demo_run, rpl_cli):
    (database,) = (demo_run / ".rocpd_profile").rglob("*.db")
    of_run = rpl_cli("export", "--format", "dot", demo_run).assert_ok().stdout
    of_file = rpl_cli("export", "--format", "dot", database).assert_ok().stdout
    assert of_run == of_file
    assert of_run.startswith("digraph")


def test_a_file_gives_the_same_rows_as_its_run(demo_run, rpl_cli):
    (database,) = (demo_run / ".rocpd_profile").rglob("*.db")
    of_run = rpl_cli("export", "--format", "csv", demo_run).assert_ok().stdout
    of_file = rpl_cli("export", "--format", "csv", database).assert_ok().stdout
    width = len(COLUMNS)  # behind them are counters, which other files of the run hold
    rows = [[row[:width] for row in csv.reader(text.splitlines())] for text in (of_file, of_run)]
    assert rows[0] == rows[1]


@pytest.mark.data
@pytest.mark.parametrize("name", ["csv", "dot"])
def test_counter_passes_alone_are_refused(name, rpl_shared_data, rpl_cli):
    recording = rpl_shared_data / "counters_gfx942" / "vcopy_MI300X_A1_rocpd"
    outcome = rpl_cli("export", "--format", name, recording).assert_exit(65)
    assert "only counter passes" in outcome.stderr


@pytest.mark.data
@pytest.mark.parametrize("name", ["csv", "speedscope"])
def test_ranks_are_exported_together(name, rpl_shared_data, rpl_cli):
    folder = rpl_shared_data / "rocpd" / "vllm-mi300x-8gpu-rpd"
    outcome = rpl_cli("export", "--format", name, folder / "trace_0.rpd.gz", folder / "trace_1.rpd.gz")
    assert "81682" in outcome.assert_ok().stdout


def test_a_format_that_is_not_known_is_a_usage_error(demo_run, rpl_cli):
    assert "perfetto" in rpl_cli("export", "--format", "flamegraph", demo_run).assert_exit(64).stderr


def test_without_a_run_the_latest_is_looked_for(rpl_cli, tmp_path):
    rpl_cli("export", "--format", "csv", cwd=tmp_path).assert_exit(69)


@pytest.mark.parametrize(
    ("intervals", "groups"),
    [
        ([], 0),
        ([(0, 5), (5, 9), (9, 9)], 1),
        ([(0, 5), (1, 2), (2, 3), (4, 9)], 2),
        ([(0, 9), (0, 9), (0, 9)], 3),
        ([(3, 3), (3, 3), (3, 4)], 1),
    ],
)
def test_overlaps_are_split_into_as_few_groups_as_possible(intervals, groups):
    import numpy as np

    begin = np.array([b for b, _ in intervals], dtype=np.int64)
    end = np.array([e for _, e in intervals], dtype=np.int64)
    parts = split_overlaps(begin, end)
    assert len(parts) == groups
    assert sorted(int(i) for part in parts for i in part) == list(range(len(intervals)))
    for part in parts:
        assert (begin[part][1:] >= end[part][:-1]).all()


def test_one_overlap_leaves_all_other_intervals_on_the_first_track():
    import numpy as np

    begin = np.arange(100) * 10
    end = begin + 9
    end[3] += 5
    first, second = split_overlaps(begin, end)
    assert second.tolist() == [4]
    assert first.size == 99
