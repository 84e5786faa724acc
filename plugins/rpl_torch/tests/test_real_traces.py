"""Real traces of MI300X against sums over their JSON by plain code."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from fractions import Fraction

import pytest

from rpl_core.model.trace import RANGES
from rpl_torch.analysis import torch_report
from rpl_torch.model import TORCH

pytestmark = pytest.mark.data
WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def ns(microseconds: float) -> int:
    """Exactly: the files have three digits behind the point."""
    return round(Fraction(repr(microseconds)) * 1000)


def events(document, *categories):
    return [e for e in document["traceEvents"] if e.get("ph") == "X" and e.get("cat") in categories]


def test_every_kernel_copy_and_call_is_there_with_its_time(real, read):
    path, document = real
    trace = read(path)
    for category, rows in (("kernel", trace.dispatches), ("cuda_runtime", trace.api_calls)):
        expected = sorted(
            (ns(e["ts"]) + document["baseTimeNanoseconds"], ns(e["dur"]), e["args"]["correlation"])
            for e in events(document, category)
        )
        found = zip(rows.begin_ns, rows.end_ns - rows.begin_ns, rows.correlation_id, strict=True)
        assert sorted((int(a), int(b), int(c)) for a, b, c in found) == expected
    copied = events(document, "gpu_memcpy", "gpu_memset")
    rows = trace.copies
    assert len(rows) == len(copied)
    assert int((rows.end_ns - rows.begin_ns).sum()) == sum(ns(e["dur"]) for e in copied)
    assert int(rows.size_bytes[rows.size_bytes >= 0].sum()) == sum(e["args"].get("bytes", 0) for e in copied)
    assert trace.source.reader == "torch-profiler"
    assert trace.origin.value == "measured"


def test_kernels_streams_and_directions_have_their_names(real, read):
    path, document = real
    trace = read(path)
    times = defaultdict(int)
    for kernel, duration in zip(trace.dispatches.kernel, trace.dispatches.duration_ns(), strict=True):
        times[trace.kernels[kernel].name] += int(duration)
    expected = defaultdict(int)
    for event in events(document, "kernel"):
        expected[event["name"].strip()] += ns(event["dur"])
    assert times == expected
    streams = Counter(trace.streams[row].id for row in trace.dispatches.stream)
    assert streams == Counter(e["args"]["stream"] for e in events(document, "kernel"))
    fills = len(events(document, "gpu_memset"))
    fill = [i for i, name in enumerate(trace.copy_directions) if name == "MEMSET"]
    assert sum(int(d) in fill for d in trace.copies.direction) == fills


def test_grids_are_work_items_whatever_call_launched_the_kernel(real, read):
    path, document = real
    trace = read(path)
    launchers = {e["args"]["correlation"]: e["name"] for e in events(document, "cuda_runtime")}
    expected = Counter()
    for event in events(document, "kernel"):
        grid, block = event["args"].get("grid"), event["args"].get("block")
        if grid:
            items = launchers.get(event["args"]["correlation"]) == "hipExtModuleLaunchKernel"
            expected[tuple(g if items else g * b for g, b in zip(grid, block, strict=True))] += 1
    shapes = trace.shapes.grid[trace.dispatches.shape]
    assert Counter(tuple(row) for row in shapes.tolist() if row[0] >= 0) == expected


def test_steps_and_ranges_of_record_function_are_ranges(real, read):
    path, document = real
    trace = read(path)
    expected = sorted((e["name"], ns(e["dur"])) for e in events(document, "user_annotation"))
    assert sorted((r.name, r.end_ns - r.begin_ns) for r in trace.extras.get(RANGES, ())) == expected
    steps = [r for r in trace.extras[RANGES] if r.name.startswith("ProfilerStep#")]
    assert all(step.thread_id == -1 for step in steps)


def test_the_device_is_that_of_device_properties(real, read):
    path, document = real
    agent = read(path).agents[0]
    described = document["deviceProperties"][0]
    assert (agent.product, agent.compute_units) == (described["name"], described["numSms"])
    assert agent.index in {e["args"]["device"] for e in events(document, "kernel")}
    assert read(path).architecture_prefix == "gfx94"


def operators_of(document):
    """External id -> event, operators before ranges of one id."""
    found = {e["args"]["External id"]: e for e in events(document, "user_annotation")}
    return found | {e["args"]["External id"]: e for e in events(document, "cpu_op")}


def expected_times(document, key):
    operators, sums = operators_of(document), defaultdict(int)
    for event in events(document, *WORK):
        operator = operators.get(event["args"].get("External id"))
        sums[None if operator is None else key(operator)] += ns(event["dur"])
    return dict(sums)


def test_time_per_operator_and_per_shape_is_that_of_external_ids(real, read):
    path, document = real
    part = torch_report(read(path), 0, None, None)
    assert {o.name: o.time_ns for o in part.operators} == expected_times(document, lambda e: e["name"])
    assert sum(o.share for o in part.operators) == pytest.approx(1)

    def given(event):
        dims = event["args"].get("Input Dims")
        return event["name"], "" if dims is None else repr(dims).replace(" ", "")

    by_shape = defaultdict(int)
    for shape in part.shapes:
        by_shape[shape.operator, shape.dims] += shape.time_ns
    expected = expected_times(document, given)
    expected.pop(None, None)
    assert part.shapes_left_out == 0
    assert by_shape == expected


def test_modules_and_lines_are_the_innermost_frames_around_the_launch(real_named, read):
    path, document = real_named("bert-small")
    part = torch_report(read(path), 0, None, None)
    calls = {e["args"]["correlation"]: e for e in events(document, "cuda_runtime")}
    frames = events(document, "python_function")
    modules, lines = defaultdict(int), defaultdict(int)
    for event in events(document, *WORK):
        call = calls[event["args"]["correlation"]]
        around = [
            f
            for f in frames
            if f["tid"] == call["tid"] and f["ts"] <= call["ts"] and f["ts"] + f["dur"] >= call["ts"]
        ]
        around.sort(key=lambda f: (f["ts"], -f["dur"]))
        inner = [f["name"] for f in around if f["name"].startswith("nn.Module: ")]
        modules[inner[-1].removeprefix("nn.Module: ") if inner else None] += ns(event["dur"])
        own = [f["name"] for f in around if ".py(" in f["name"] and not f["name"].startswith("torch/")]
        lines[own[-1] if own else None] += ns(event["dur"])
    assert {m.name: m.time_ns for m in part.modules if m.time_ns} == modules
    assert {line.name: line.time_ns for line in part.lines} == lines


def test_backward_work_belongs_to_the_module_of_its_forward_operator(real_named, read):
    path, _ = real_named("resnet-act-checkpoint")
    part = torch_report(read(path), 0, None, None)
    trace = read(path)
    (process,) = trace.extras[TORCH]
    assert len(process.flows.forward_ns) == 213
    convolutions = [m for m in part.modules if (m.name or "").startswith("Conv2d")]
    launched = sum(m.time_ns for m in convolutions)
    backward = next(o.time_ns for o in part.operators if o.name == "aten::convolution_backward")
    forward = next(o.time_ns for o in part.operators if o.name == "aten::miopen_convolution")
    # Each link is there: what both launched is all of it.
    assert backward + forward == launched


@pytest.mark.parametrize("name", ["bert-small", "nsfw-detection", "qwen-0.5b"])
def test_tracelens_counts_the_same_launched_time_per_operator(real_named, read, name):
    """Its times are differences of microseconds in doubles, each of which is off by up to half a 2^-11."""
    path, _ = real_named(name)
    part = torch_report(read(path), 0, None, None)
    ours = {o.name: o for o in part.operators if o.name is not None}
    with (path.parent / "tracelens_ops_summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    theirs = {row["name"]: float(row["total_direct_kernel_time_sum"]) for row in rows}
    assert theirs
    for operator, microseconds in theirs.items():
        own = ours[operator]
        assert own.time_ns / 1e3 == pytest.approx(microseconds, abs=own.launches * 2**-11), operator
