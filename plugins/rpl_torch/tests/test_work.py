"""Modelled work: every GEMM, convolution and attention of the real traces by formulas worked out here."""

from __future__ import annotations

import json
from collections import defaultdict
from math import floor

import pytest

from rpl_core.model.device import Pipe
from rpl_torch.analysis import torch_report
from rpl_torch.analysis.work import FORMULAS, NoWork, Work, operator_work
from rpl_torch.model import Inputs

BF16, F32 = "c10::BFloat16", "float"


def work(name, dims, types, scalars=()):
    text = [json.dumps(value).encode() for value in (dims, types, list(scalars) or [""] * len(dims))]
    return operator_work(name, Inputs(*text))


def looped_product(m, n, k):
    """Multiplications and additions, counted one by one over a small part and scaled by its size."""
    count = 0
    for _ in range(n):
        for _ in range(k):
            count += 2
    return m * count


def attention_flops(batch, heads, queries, keys, width, *, causal):
    """Scores and weighted values of every pair that the mask leaves, row by row."""
    pairs = sum(min(row + 1, keys) if causal else keys for row in range(queries))
    return batch * heads * pairs * (2 * width + 2 * width)


def convolution_flops(x, weight, stride, padding, dilation):
    out = [
        floor((size + 2 * p - (d * (k - 1) + 1)) / s) + 1
        for size, k, s, p, d in zip(x[2:], weight[2:], stride, padding, dilation, strict=True)
    ]
    per_output = 2 * weight[1] * weight[2] * weight[3]
    return x[0] * weight[0] * out[0] * out[1] * per_output, x[0] * weight[0] * out[0] * out[1]


def expected(event):
    """FLOPs and elements moved of one operator, from its event; ``None``: not one of these kinds."""
    args = event["args"]
    dims, scalars = args.get("Input Dims"), args.get("Concrete Inputs")
    name = event["name"]
    if name in ("aten::mm", "aten::addmm"):
        a, b = (dims[0], dims[1]) if name == "aten::mm" else (dims[1], dims[2])
        extra = 0 if name == "aten::mm" else dims[0][0]
        m, k, n = a[0], a[1], b[1]
        return looped_product(m, 1, k) * n, m * k + k * n + m * n + extra
    if name == "aten::bmm":
        batch, m, k = dims[0]
        n = dims[1][2]
        return batch * 2 * m * k * n, batch * (m * k + k * n + m * n)
    if name == "aten::miopen_convolution":
        padding, stride, dilation = (json.loads(scalars[i]) for i in (3, 4, 5))
        flops, out = convolution_flops(dims[0], dims[1], stride, padding, dilation)
        x, w = (product(tensor) for tensor in dims[:2])
        return flops, x + w + out + (dims[2][0] if dims[2] else 0)
    if name == "aten::convolution_backward":
        stride, padding, dilation = (json.loads(scalars[i]) for i in (4, 5, 6))
        flops, out = convolution_flops(dims[1], dims[2], stride, padding, dilation)
        assert out == product(dims[0])
        wanted = [word == "True" for word in scalars[10].strip("[]").split(", ")]
        x, w = product(dims[1]), product(dims[2])
        moved = out + x * (wanted[0] + wanted[1]) + w * (wanted[0] + wanted[1])
        return flops * (wanted[0] + wanted[1]), moved
    if name == "aten::_flash_attention_forward":
        (batch, queries, heads, width), (_, keys, kv, _) = dims[0], dims[1]
        causal = scalars[8] == "True"
        moved = batch * width * (2 * queries * heads + 2 * keys * kv) + batch * heads * queries * 2
        return attention_flops(batch, heads, queries, keys, width, causal=causal), moved
    return None


def product(sizes):
    result = 1
    for size in sizes:
        result *= size
    return result


@pytest.mark.data
def test_every_gemm_convolution_and_attention_of_the_real_traces(real, read):
    path, document = real
    part = torch_report(read(path), 0, None, None)
    launching = {
        e["args"].get("External id")
        for e in document["traceEvents"]
        if e.get("cat") in ("kernel", "gpu_memcpy")
    }
    flops, moved, calls = (defaultdict(int) for _ in range(3))
    for event in document["traceEvents"]:
        if event.get("cat") == "cpu_op" and event["args"]["External id"] in launching:
            known = expected(event)
            if known is not None:
                size = 4 if event["args"]["Input type"][0] == "float" else 2
                flops[event["name"]] += known[0]
                moved[event["name"]] += known[1] * size
                calls[event["name"]] += 1
    assert flops
    found = {o.name: o for o in part.operators if o.name in flops}
    assert {name: o.modelled_calls for name, o in found.items()} == dict(calls)
    assert {name: o.flops for name, o in found.items()} == dict(flops)
    assert {name: o.bytes for name, o in found.items()} == dict(moved)


@pytest.mark.data
def test_what_has_no_formula_is_counted_and_named(real, read):
    path, _ = real
    part = torch_report(read(path), 0, None, None)
    without = {
        o.name: o.calls - o.modelled_calls for o in part.operators if o.name and o.calls > o.modelled_calls
    }
    named = defaultdict(int)
    for one in part.unmodelled:
        assert one.reason
        named[one.operator] += one.calls
    assert named == without
    modelled = sum(s.time_ns for s in part.shapes if s.formula)
    assert part.modelled_share == pytest.approx(modelled / part.time_ns)


#: Operator, shapes, types, scalars -> operations and bytes, each worked out by hand.
TABLE = [
    ("aten::mm", [[2, 3], [3, 5]], [F32, F32], (), 60, 4 * (6 + 15 + 10)),
    ("aten::addmm", [[5], [2, 3], [3, 5]], [BF16] * 3, (), 60, 2 * (6 + 15 + 10 + 5)),
    ("aten::bmm", [[7, 2, 3], [7, 3, 5]], [BF16] * 2, (), 420, 14 * (6 + 15 + 10)),
    ("aten::mv", [[4, 3], [3]], [F32] * 2, (), 24, 4 * (12 + 3 + 4)),
    ("aten::_scaled_mm", [[2, 3], [3, 5], [], [], [], [], [], []], ["c10::Float8_e4m3fnuz"] * 2 + [""] * 6,
     ("", "", "", "", "", "", "15", "True"), 60, 6 + 15 + 20),
    ("aten::add", [[4, 1, 8], [3, 8], []], [F32, F32, "Scalar"], (), 96, 4 * (32 + 24 + 96)),
    ("aten::mul", [[4, 8], [], []], [BF16, "double", ""], (), 32, 2 * 64 + 8),
    ("aten::mul", [[8], [8], [8]], [F32] * 3, (), 8, 4 * 24),  # the third takes the result
    ("aten::eq", [[8], []], [F32, "Scalar"], (), 8, 4 * 8 + 8),
    ("aten::copy_", [[8], [8], []], [BF16, F32, "Scalar"], (), 0, 48),
    ("aten::sum", [[2, 8], [], [], []], [F32, "ScalarList", "Scalar", ""],
     ("", "[-1]", "True", ""), 16, 4 * 18),
    ("aten::sum", [[2, 8], []], [F32, ""], ("", ""), 16, 4 * 17),
    ("aten::argmax", [[2, 8], [], []], [F32, "Scalar", "Scalar"], ("", "-1", "False"), 16, 64 + 16),
    ("aten::native_layer_norm", [[3, 8], [], [8], [8], []], [F32, "ScalarList", F32, F32, "Scalar"],
     ("", "[8]", "", "", "1e-5"), 7 * 24, 4 * (48 + 16 + 6)),
    ("aten::native_batch_norm", [[2, 3, 4], [3], [3], [3], [3], [], [], []], [F32] * 5 + ["Scalar"] * 3,
     ("",) * 5 + ("False", "0.1", "1e-5"), 96, 4 * (48 + 12)),
    ("aten::embedding", [[10, 4], [3]], [F32, "long int"], (), 0, 24 + 2 * 3 * 4 * 4),
    ("aten::embedding_dense_backward", [[3, 4], [3], [], [], []], [F32, "long int"] + ["Scalar"] * 3,
     ("", "", "10", "-1", "False"), 12, 48 + 24 + 160),
    ("aten::convolution", [[1, 4, 5, 5], [6, 2, 3, 3], [6], [], [], [], [], [], []],
     [F32] * 3 + ["ScalarList"] * 3 + ["Scalar", "ScalarList", "Scalar"],
     ("", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2"),
     2 * 6 * 25 * 2 * 9, 4 * (100 + 108 + 6 + 150)),
    ("aten::_scaled_dot_product_flash_attention", [[1, 2, 3, 4]] * 3 + [[]] * 4, [F32] * 3 + ["Scalar"] * 4,
     ("", "", "", "0.", "True", "False", "0.5"), 2 * 6 * (2 * 4 + 2 * 4), 4 * 4 * 24 + 24),
    ("aten::_scaled_dot_product_flash_attention_backward", [[1, 2, 3, 4]] * 5 + [[1, 2, 3]] + [[]] * 9,
     [BF16] * 5 + [F32] + [""] * 9,
     ("",) * 6 + ("", "", "3", "3", "0.", "False", "", "", "0.5"), 2 * 9 * 10 * 4, 2 * 8 * 24 + 24),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dims", "types", "scalars", "flops", "moved"), TABLE)
def test_formulas_by_hand(name, dims, types, scalars, flops, moved):
    found = work(name, dims, types, scalars)
    assert isinstance(found, Work), found
    assert (found.flops, found.bytes) == (flops, moved)


@pytest.mark.parametrize(
    ("name", "dims", "types", "scalars", "reason"),
    [
        ("aten::mm", [[2, 3], [4, 5]], [F32, F32], (), "don't fit"),
        ("aten::mm", [[2, 3], [3, 5]], [F32, "c10::complex<float>"], (), "no tensor of a known type"),
        ("aten::nonzero", [[2, 3]], [F32], (), "no formula for this operator"),
        ("aten::mm", [], [], (), "no tensor"),
        ("aten::sum", [[8], []], [BF16, "Scalar"], ("", "6"), "another type"),
        ("aten::_flash_attention_forward", [[9, 2, 4]] * 3 + [[3], [3]] + [[]] * 4,
         [BF16] * 3 + ["int", "int"] + [""] * 4, ("",) * 8 + ("True",), "packed sequences"),
        ("aten::_scaled_dot_product_flash_attention", [[1, 2, 3, 4], [1, 2, 5, 4], [1, 2, 5, 4], [], []],
         [F32] * 3 + ["Scalar"] * 2, ("", "", "", "0.", "True"), "different lengths"),
    ],
)  # fmt: skip
def test_what_is_not_definite_has_a_reason(name, dims, types, scalars, reason):
    found = work(name, dims, types, scalars)
    assert isinstance(found, NoWork)
    assert reason in found.reason


def test_hostile_shapes_are_no_work():
    for dims in (
        [[2**62, 2**62], [2**62, 1]],
        [["a"], 3],
        [[-1, 2], [2, 2]],
        [[True, 2], [2, 2]],
        [{"a": 1}],
    ):
        assert isinstance(work("aten::mm", dims, [F32, F32]), NoWork)


def test_elements_of_two_bytes_are_computed_as_floats_by_vector_units():
    found = work("aten::add", [[8], [8]], [BF16, BF16])
    assert (found.pipe, found.data_type) == (Pipe.VALU, "F32")
    assert work("aten::mm", [[2, 2], [2, 2]], [BF16, BF16]).data_type == "BF16"


def test_every_formula_has_a_source():
    assert all(rule.source for rule in FORMULAS.values())
