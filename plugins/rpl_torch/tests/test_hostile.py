"""Damaged and hostile files: one line and 65, or everything that is usable with what was left out counted."""

from __future__ import annotations

import gzip
import json

import pytest

from rpl_core.errors import BadDataError
from rpl_testkit.kineto_writer import KinetoTrace
from rpl_torch.analysis import torch_report
from rpl_torch.reader import TorchReader
from rpl_torch.trace_file import read_trace


def small():
    trace = KinetoTrace()
    operator = trace.operator("aten::add", 0.0, 8.0, dims=[[8], [8]], types=["float", "float"])
    trace.frame("a.py(1): f", 0.0, 9.0)
    for number in range(8):
        trace.kernel(f"k{number % 2}", 1.0 + number, 10.0 * number + 10.0, 5.0, operator=operator)
    return trace


def read(path):
    return read_trace(path, "torch-profiler", "f", None)


def refused(path, rpl_cli):
    """The one line of stderr."""
    result = rpl_cli("analyze", path)
    assert result.exit_code == 65, (result.exit_code, result.stderr)
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, lines
    assert "Traceback" not in result.stderr
    return lines[0]


def test_a_truncated_gzip_is_refused(tmp_path, rpl_cli):
    trace = small()
    for number in range(4000):
        trace.kernel(f"kernel {number}", 100.0 + number, 200.0 + number, 0.5)
    packed = trace.write(tmp_path / "whole.json.gz").read_bytes()
    path = tmp_path / "t.json.gz"
    for keep in (len(packed) // 2, len(packed) - 5):
        path.write_bytes(packed[:keep])
        assert "cut off" in refused(path, rpl_cli)


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
def test_truncated_text_is_refused(tmp_path, rpl_cli, keep):
    text = json.dumps(small().document())
    path = tmp_path / "t.json"
    path.write_text(text[: int(len(text) * keep)])
    assert str(path) in refused(path, rpl_cli)


def changed(tmp_path, change, name="t.json"):
    document = small().document()
    change(document)
    path = tmp_path / name
    path.write_text(json.dumps(document))
    return path


def of_category(document, category):
    return [event for event in document["traceEvents"] if event["cat"] == category]


WRONG = {
    "text for a time": lambda d: of_category(d, "kernel")[0].update(ts="soon"),
    "a list for a duration": lambda d: of_category(d, "kernel")[1].update(dur=[1]),
    "a number for a name": lambda d: of_category(d, "cpu_op")[0].update(name=3),
    "text for a correlation": lambda d: of_category(d, "kernel")[0]["args"].update(correlation="x"),
    "null for a category": lambda d: of_category(d, "kernel")[0].update(cat=None),
    "a number for arguments": lambda d: of_category(d, "kernel")[0].update(args=7),
    "text for a thread": lambda d: of_category(d, "cpu_op")[0].update(tid="main"),
    "an event that is a number": lambda d: d["traceEvents"].insert(3, 5),
    "an object for the events": lambda d: d.update(traceEvents={"a": []}),
    "a huge integer": lambda d: of_category(d, "kernel")[0]["args"].update(correlation=10**40),
    "a huge external id": lambda d: of_category(d, "cpu_op")[0]["args"].update({"External id": 2**63}),
    "a huge time": lambda d: of_category(d, "kernel")[0].update(ts=1e300),
    "a huge base": lambda d: d.update(baseTimeNanoseconds=2**62),
    "text for devices": lambda d: d.update(deviceProperties="MI300X"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_types_and_sizes_are_one_line(tmp_path, rpl_cli, what):
    refused(changed(tmp_path, WRONG[what]), rpl_cli)


def test_not_a_number_is_refused(tmp_path, rpl_cli):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(small().document()).replace('"ts": 1.0', '"ts": NaN', 1))
    refused(path, rpl_cli)


def test_two_lists_of_events_are_refused_and_not_half_read(tmp_path, rpl_cli):
    text = json.dumps(small().document())
    path = tmp_path / "t.json"
    path.write_text(text[:-1] + ', "traceEvents": []}')
    assert "traceEvents twice" in refused(path, rpl_cli)


def test_what_is_behind_the_object_is_refused(tmp_path, rpl_cli):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(small().document()) + "{}")
    refused(path, rpl_cli)


def test_the_last_of_repeated_keys_counts_as_in_every_parser(tmp_path):
    text = json.dumps(small().document()).replace('"name": "k0"', '"name": "first", "name": "k0"')
    path = tmp_path / "t.json"
    path.write_text(text)
    assert {kernel.name for kernel in read(path).kernels} == {"k0", "k1"}


def test_events_out_of_order_are_the_same_trace(tmp_path):
    document = small().document()
    ordered = read(changed(tmp_path, lambda d: None))
    document["traceEvents"].reverse()
    path = tmp_path / "reversed.json"
    path.write_text(json.dumps(document))
    found = read(path)
    assert found.dispatches.begin_ns.tolist() == ordered.dispatches.begin_ns.tolist()
    one, other = (torch_report(trace, 0, None, None) for trace in (ordered, found))
    assert one == other


@pytest.mark.parametrize(
    ("category", "code"),
    [
        ("kernel", "dispatch.negative_duration"),
        ("cuda_runtime", "api.impossible_time"),
        ("cpu_op", "torch.negative_duration"),
        ("python_function", "torch.negative_duration"),
    ],
)
def test_negative_durations_are_left_out_and_counted(tmp_path, category, code):
    trace = read(changed(tmp_path, lambda d: of_category(d, category)[0].update(dur=-3.0)))
    assert {d.code: d.count for d in trace.diagnostics} == {code: 1}
    assert len(trace.dispatches) == (7 if category == "kernel" else 8)
    torch_report(trace, 0, None, None)


def test_a_gzip_bomb_is_refused(tmp_path, rpl_cli):
    document = small().document()
    text = json.dumps(document).replace("[{", "[" + " " * (200 << 20) + "{", 1)
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(text.encode(), 9))
    refused(path, rpl_cli)


def test_a_deep_value_is_refused(tmp_path, rpl_cli):
    path = tmp_path / "t.json"
    text = json.dumps(small().document())
    deep = '"Input Dims": ' + "[" * 100_000 + "]" * 100_000
    path.write_text(text.replace('"Input Dims": [[8], [8]]', deep, 1))
    refused(path, rpl_cli)


def test_no_gpu_work_says_how_to_record_it(tmp_path, rpl_cli):
    def without(document):
        document["traceEvents"] = of_category(document, "cpu_op")

    assert "ProfilerActivity.CUDA" in refused(changed(tmp_path, without), rpl_cli)


def test_a_link_and_a_folder_of_other_json_are_passed_over(tmp_path):
    other = tmp_path / "chrome.json"
    other.write_text('{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}')
    assert TorchReader().claim([other, tmp_path / "missing.json"]) == []


def test_stacks_of_any_depth_are_read(tmp_path):
    trace = small()
    depth = 50_000
    for level in range(depth):
        trace.frame(f"f.py({level % 100}): f", -1000.0 + level * 0.01, 3000.0 - level * 0.02)
    found = read(trace.write(tmp_path / "t.json"))
    part = torch_report(found, 0, None, None)
    assert len(part.lines) == 1
    assert part.lines[0].launches == 8


@pytest.mark.long
def test_a_million_nested_stacks(tmp_path):
    trace = small()
    for level in range(1_000_000):
        trace.frame("f.py(1): f", -1000.0 + level * 0.001, 3000.0 - level * 0.002)
    part = torch_report(read(trace.write(tmp_path / "t.json")), 0, None, None)
    assert part.ranks[0].frames == 1_000_001


def test_an_event_that_is_too_large_is_refused(tmp_path, monkeypatch):
    from rpl_torch import columns

    monkeypatch.setattr(columns, "_LARGEST_VALUE", 10_000)
    monkeypatch.setattr(columns, "_WINDOW_BYTES", 1000)
    path = changed(tmp_path, lambda d: d["traceEvents"][0].update(name="x" * 100_000))
    with pytest.raises(BadDataError, match="an event has more than"):
        read(path)
