"""Modelled work of every operator that has a formula, by doing it: loops over small shapes that count.

Places of arguments by PyTorch's ``native_functions.yaml``; what counts by the table of docs/torch.md: an
addition, multiplication, division, comparison or function of an element is one operation, each tensor is read
or written once. No formula is written down here, only what the operator does.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

import pytest

from rpl_torch.analysis.work import FORMULAS, NoWork, Work, operator_work
from rpl_torch.model import Inputs

F64, F32, BF16, I64 = "double", "float", "c10::BFloat16", "long int"
SIZES = {F64: 8, F32: 4, BF16: 2, I64: 8, "signed char": 1, "bool": 1}
#: A tensor (shape, type), a scalar as the profiler writes it, or nothing.
Argument = tuple[list[int], str] | str | None


def _work(name: str, *arguments: Argument) -> Work | NoWork:
    tensors = [one if isinstance(one, tuple) else ([], "Scalar" if one else "") for one in arguments]
    scalars = [one if isinstance(one, str) else "" for one in arguments]
    dims, types = [shape for shape, _ in tensors], [kind for _, kind in tensors]
    return operator_work(name, Inputs(*(json.dumps(v).encode() for v in (dims, types, scalars))))


def _is(found: Work | NoWork, flops: int, moved: int) -> None:
    assert isinstance(found, Work), found
    assert (found.flops, found.bytes) == (flops, moved)


def _bytes(*tensors: tuple[list[int], str]) -> int:
    return sum(prod(shape) * SIZES[kind] for shape, kind in tensors)


def _drawn(*seed: object) -> Iterator[random.Random]:
    for number in range(4):
        yield random.Random(f"{seed} {number}")


def test_products_of_matrices() -> None:
    """A multiplication and an addition for each term of each element of the result."""
    for rng in _drawn("gemm"):
        b, m, k, n = (rng.randint(2, 6) for _ in range(4))
        terms = sum(2 for _ in product(range(m), range(n), range(k)))
        left, right, result = ([m, k], F32), ([k, n], F32), ([m, n], F32)
        _is(_work("aten::mm", left, right), terms, _bytes(left, right, result))
        bias = ([n], F32)
        for name in ("aten::addmm", "aten::addmm_", "aten::_addmm_activation"):
            _is(_work(name, bias, left, right), terms, _bytes(bias, left, right, result))
        small = ([m, k], "signed char"), ([k, n], "signed char")
        _is(_work("aten::_int_mm", *small), terms, _bytes(*small, result))  # sums of 32 bits
        lefts, rights, results = ([b, m, k], BF16), ([b, k, n], BF16), ([b, m, n], BF16)
        _is(_work("aten::bmm", lefts, rights), b * terms, _bytes(lefts, rights, results))
        for name in ("aten::baddbmm", "aten::baddbmm_"):
            moved = _bytes(results, lefts, rights, results)
            _is(_work(name, results, lefts, rights), b * terms, moved)
        _is(_work("aten::mv", left, ([k], F32)), 2 * m * k, _bytes(left, ([k], F32), ([m], F32)))
        assert isinstance(_work("aten::bmm", lefts, ([b + 1, k, n], BF16)), NoWork)
        assert isinstance(_work("aten::bmm", lefts, ([b, k + 1, n], BF16)), NoWork)
        assert isinstance(_work("aten::mv", left, ([k + 1], F32)), NoWork)


def _window(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """Places at which the kernel lies within the padded line."""
    return sum(
        start + dilation * (kernel - 1) < size + 2 * padding for start in range(0, size + 2 * padding, stride)
    )


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions_of_any_rank(rank: int) -> None:
    for rng in _drawn("convolution", rank):
        batch, groups, channels, filters = rng.randint(1, 3), rng.randint(1, 2), 2, rng.randint(1, 3)
        size = [rng.randint(5, 9) for _ in range(rank)]
        kernel, stride, padding, dilation = ([rng.randint(1, 2) for _ in range(rank)] for _ in range(4))
        x = ([batch, groups * channels, *size], F32)
        weight = ([groups * filters, channels, *kernel], F32)
        out = [_window(*one) for one in zip(size, kernel, stride, padding, dilation, strict=True)]
        result = ([batch, groups * filters, *out], F32)
        flops = 2 * prod(result[0]) * channels * prod(kernel)
        bias = ([groups * filters], F32)
        s, p, d, g = json.dumps(stride), json.dumps(padding), json.dumps(dilation), str(groups)
        name = f"aten::conv{rank}d"
        _is(_work(name, x, weight, bias, s, p, d, g), flops, _bytes(x, weight, bias, result))
        _is(_work(name, x, weight, None, s, p, d, g), flops, _bytes(x, weight, result))
        # One number stands for all axes.
        one = _work(name, x, weight, None, "[1]", "[0]", "[1]", g)
        plain = [_window(n, k, 1, 0, 1) for n, k in zip(size, kernel, strict=True)]
        outputs = batch * groups * filters * prod(plain)
        _is(one, 2 * outputs * channels * prod(kernel), _bytes(x, weight) + 4 * outputs)
        for general in ("aten::convolution", "aten::_convolution"):
            words = (x, weight, bias, s, p, d, "False", "[0]", g)
            _is(_work(general, *words), flops, _bytes(x, weight, bias, result))
            assert isinstance(_work(general, *words[:6], "True", "[0]", g), NoWork)
        _is(_work("aten::cudnn_convolution", x, weight, p, s, d, g), flops, _bytes(x, weight, result))
        for other in ("aten::miopen_convolution", "aten::miopen_depthwise_convolution"):
            _is(_work(other, x, weight, bias, p, s, d, g), flops, _bytes(x, weight, bias, result))
        for wanted in product((False, True), repeat=3):
            mask = f"[{', '.join(map(str, wanted))}]"
            found = _work(
                "aten::convolution_backward", result, x, weight, "[1]", s, p, d, "False", "[0]", g, mask
            )
            to_input, to_weight, to_bias = wanted
            # Each element of a bias' gradient is the sum of its channel.
            sums = prod(result[0]) - groups * filters if to_bias else 0
            moved = _bytes(result) + (4 * groups * filters if to_bias else 0)
            moved += _bytes(weight, x) * (to_input + to_weight)  # read the one, write the other
            _is(found, flops * (to_input + to_weight) + sums, moved)


#: Where the arguments stand: query, the mask, what holds lengths, whether heads come last, backward.
ATTENTION = {
    "_flash_attention_forward": (0, 8, 3, True),
    "_scaled_dot_product_flash_attention": (0, 4, None, False),
    "_efficient_attention_forward": (0, 9, 4, True),
    "_scaled_dot_product_efficient_attention": (0, 6, None, False),
    "_scaled_dot_product_cudnn_attention": (0, 6, None, False),
    "_flash_attention_backward": (1, 11, 6, True),
    "_scaled_dot_product_flash_attention_backward": (1, 11, None, False),
    "_efficient_attention_backward": (1, 14, 6, True),
    "_scaled_dot_product_efficient_attention_backward": (1, 11, None, False),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name: str) -> None:
    """Scores and weighted values of every pair of query and key that the mask leaves, by pairs."""
    first, mask, lengths, heads_last = ATTENTION[name]
    for rng in _drawn(name):
        batch, groups, kv_heads, d, dv = (rng.randint(1, 4) for _ in range(5))
        heads, causal = groups * kv_heads, rng.random() < 0.5
        queries = rng.randint(2, 6)
        keys = queries if causal else rng.randint(2, 6)

        def tensor(h: int, length: int, width: int, batch: int = batch) -> tuple[list[int], str]:
            return ([batch, length, h, width] if heads_last else [batch, h, length, width]), BF16

        q, k, v = tensor(heads, queries, d), tensor(kv_heads, keys, d), tensor(kv_heads, keys, dv)
        out = tensor(heads, queries, dv)
        arguments: list[Argument] = [None] * (mask + 2)
        arguments[first : first + 3] = [q, k, v]
        if first:
            arguments[0] = out
        flag = str(int(causal)) if name.startswith("_efficient") else str(causal)
        arguments[mask] = flag
        found = _work(f"aten::{name}", *arguments)
        pairs = sum(not causal or key <= row for row in range(queries) for key in range(keys))
        row_sums = batch * heads * queries * 4
        if first:
            # Scores once more, then the gradients of probabilities, values, queries and keys.
            flops = batch * heads * pairs * 2 * (d + dv + dv + d + d)
            moved = 2 * _bytes(q, k, v) + 2 * _bytes(out) + row_sums
        else:
            flops = batch * heads * pairs * 2 * (d + dv)
            moved = _bytes(q, k, v, out) + row_sums
        _is(found, flops, moved)
        if lengths is not None:
            arguments[lengths] = ([3], "int")
            assert isinstance(_work(f"aten::{name}", *arguments), NoWork)
            arguments[lengths] = None
        arguments[mask] = "maybe"
        assert isinstance(_work(f"aten::{name}", *arguments), NoWork)


#: Operators by how many arguments are tensors and what each element of the result takes.
ELEMENTWISE = {
    (1, 1): "neg abs exp exp2 log log2 log1p expm1 sqrt rsqrt sin cos tan tanh sigmoid silu gelu relu "
    "reciprocal square erf floor ceil round sign bitwise_not hardtanh leaky_relu elu softplus",
    (2, 1): "add sub rsub mul div pow maximum minimum clamp_min clamp_max bitwise_and bitwise_or",
    (3, 1): "clamp where",
    (2, 2): "threshold_backward sigmoid_backward tanh_backward silu_backward gelu_backward",
    (3, 2): "addcmul addcdiv lerp",
}
COMPARING = {2: "eq ne lt le gt ge", 1: "logical_not isnan isinf isfinite"}


def _broadcast(rng: random.Random, count: int) -> tuple[list[list[int]], list[int]]:
    """Shapes that fit each other, and what they become."""
    full = [rng.randint(2, 4) for _ in range(3)]
    others = ([n if rng.random() < 0.6 else 1 for n in full][rng.randint(0, 2) :] for _ in range(count - 1))
    shapes = [full, *others]
    rng.shuffle(shapes)
    return shapes, full


def test_functions_of_elements() -> None:
    for (arity, each), names in ELEMENTWISE.items():
        for name in names.split():
            for rng in _drawn(name):
                shapes, full = _broadcast(rng, arity)
                tensors = [(shape, F32) for shape in shapes]
                moved = _bytes(*tensors, (full, F32))
                for word in (f"aten::{name}", f"aten::{name}_"):
                    _is(_work(word, *tensors), each * prod(full), moved)
    for arity, names in COMPARING.items():
        for name in names.split():
            for rng in _drawn(name):
                shapes, full = _broadcast(rng, arity)
                tensors = [(shape, F32) for shape in shapes]
                _is(_work(f"aten::{name}", *tensors), prod(full), _bytes(*tensors, (full, "bool")))
    # A number of Python is a tensor of one element, from which the result does not take its type.
    _is(_work("aten::mul", ([2, 3], BF16), ([], F64)), 6, _bytes(([2, 3], BF16), ([2, 3], BF16)) + 8)
    assert isinstance(_work("aten::add", ([2, 3], F32), ([2], F32)), NoWork)


def test_every_elementwise_operator_is_counted_here() -> None:
    known = {name for names in (*ELEMENTWISE.values(), *COMPARING.values()) for name in names.split()}
    modelled = {name for name, rule in FORMULAS.items() if rule.name == "elementwise"}
    assert {name.removeprefix("aten::").removesuffix("_") for name in modelled} == known


def test_copies_fills_and_rows_of_tables_compute_nothing() -> None:
    a, b = ([3, 4], F32), ([3, 4], BF16)
    _is(_work("aten::copy_", a, b, "False"), 0, _bytes(a, b))
    for name in ("aten::fill_", "aten::zero_"):
        _is(_work(name, a), 0, _bytes(a))
    table, index = ([9, 4], BF16), ([5], I64)
    rows = ([5, 4], BF16)
    _is(_work("aten::embedding", table, index, "-1"), 0, _bytes(index, rows, rows))
    _is(_work("aten::index_select", table, "0", index), 0, _bytes(index, rows, rows))
    # The gradient is added up row by row into a table of all rows.
    added = _work("aten::embedding_dense_backward", rows, index, "9", "-1", "False")
    _is(added, 20, _bytes(rows, index, table))


@pytest.mark.parametrize(
    ("name", "result"),
    [
        *((name, None) for name in ("sum", "mean", "amax", "amin", "prod")),
        *((name, "bool") for name in ("all", "any")),
        *((name, I64) for name in ("argmax", "argmin")),
    ],
)
def test_reductions(name: str, result: str | None) -> None:
    for rng in _drawn(name):
        shape = [rng.randint(2, 5) for _ in range(3)]
        x = (shape, F32)
        gone = rng.sample(range(3), rng.randint(1, 2))
        signed = [dim - 3 if rng.random() < 0.5 else dim for dim in gone]
        kept = [size for i, size in enumerate(shape) if i not in gone]
        to = ([1, *kept], result or F32)
        _is(_work(f"aten::{name}", x, json.dumps(signed), "False"), prod(shape), _bytes(x, to))
        one = signed[0]
        to_one = ([size for i, size in enumerate(shape) if i != one % 3], result or F32)
        _is(_work(f"aten::{name}", x, str(one), "False"), prod(shape), _bytes(x, to_one))
        _is(_work(f"aten::{name}", x, "[]", "False"), prod(shape), _bytes(x, ([1], result or F32)))
        _is(_work(f"aten::{name}", x), prod(shape), _bytes(x, ([1], result or F32)))
        assert isinstance(_work(f"aten::{name}", x, json.dumps(signed), "False", "6"), NoWork)


def test_norms() -> None:
    """Mean, deviation, square, sum, scale: 5 for each element, and 1 for each of weight and bias."""
    for rng in _drawn("norm"):
        rows, width = rng.randint(2, 5), rng.randint(2, 5)
        x, own = ([rows, width], F32), ([width], F32)
        for weight, bias in product((own, None), repeat=2):
            given = [one for one in (weight, bias) if one]
            found = _work("aten::native_layer_norm", x, f"[{width}]", weight, bias, "1e-5")
            # Mean and deviation of each row are written too.
            _is(found, rows * width * (5 + len(given)), _bytes(x, x, *given) + rows * 2 * 4)
        for weight in (own, None):
            given = [weight] if weight else []
            found = _work("aten::_fused_rms_norm", x, f"[{width}]", weight, "1e-5")
            _is(found, rows * width * (3 + len(given)), _bytes(x, x, *given) + rows * 4)
        batch, groups, channels, places = (rng.randint(1, 4) for _ in range(4))
        x = ([batch, groups * channels, places], F32)
        own = ([groups * channels], F32)
        scalars = (str(batch), str(groups * channels), str(places), str(groups), "1e-5")
        found = _work("aten::native_group_norm", x, own, own, *scalars)
        _is(found, 7 * prod(x[0]), _bytes(x, x, own, own) + 2 * batch * groups * 4)
        found = _work("aten::native_group_norm", x, None, None, *scalars)
        _is(found, 5 * prod(x[0]), _bytes(x, x) + 2 * batch * groups * 4)
        each = [own] * 4
        for name in ("native_batch_norm", "miopen_batch_norm", "cudnn_batch_norm"):
            plain = _work(f"aten::{name}", x, *each, "False", "0.1", "1e-5")
            _is(plain, 4 * prod(x[0]), _bytes(x, x, *each))
            trained = _work(f"aten::{name}", x, *each, "True", "0.1", "1e-5")
            # Running mean and variance are written again, and those of the batch kept for the backward.
            _is(trained, 7 * prod(x[0]), _bytes(x, x, *each, own, own, own, own))
        found = _work(
            "aten::native_batch_norm_backward", x, x, own, own, own, own, own, "True", "1e-5", "[True]"
        )
        # Two sums of the gradient, and of weight and bias: read both, write one, and two gradients.
        _is(found, 9 * prod(x[0]), _bytes(x, x, x, *[own] * 5, own, own))


def test_every_operator_with_a_formula_is_met_here() -> None:
    """By the names in this file: whoever adds one adds its count."""
    own = {
        *("mm", "addmm", "addmm_", "_addmm_activation", "_int_mm", "bmm", "baddbmm", "baddbmm_", "mv"),
        *("conv1d", "conv2d", "conv3d", "convolution", "_convolution", "cudnn_convolution"),
        *("miopen_convolution", "miopen_depthwise_convolution", "convolution_backward", *ATTENTION),
        *("copy_", "fill_", "zero_", "embedding", "index_select", "embedding_dense_backward"),
        *("sum", "mean", "amax", "amin", "prod", "all", "any", "argmax", "argmin"),
        *("native_layer_norm", "_fused_rms_norm", "native_group_norm", "native_batch_norm"),
        *("miopen_batch_norm", "cudnn_batch_norm", "native_batch_norm_backward"),
    }
    others: dict[str, Any] = {n: r for n, r in FORMULAS.items() if r.name != "elementwise"}
    # The one of 8-bit floats has its row in test_work.py.
    assert {name.removeprefix("aten::") for name in others} == own | {"_scaled_mm"}
