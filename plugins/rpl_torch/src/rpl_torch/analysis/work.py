"""Floating-point operations and bytes of an operator, from the shapes and types that it was given.

Each formula counts what the operator's definition asks for: one operation for each addition, multiplication,
division, comparison or function of an element, two for each multiply-add; each tensor read or written once.
The sources stand beside the formulas; docs/torch.md has them as a table. What an implementation does beside
that (a faster algorithm, several passes, padding) is not in them: the figures are modelled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rpl_core.model.device import Pipe
from rpl_core.values import frozen
from rpl_torch.model import Inputs

__all__ = ["FORMULAS", "NoWork", "Work", "operator_work"]

_COUNTER = "PyTorch torch/utils/flop_counter.py"
#: Bytes of an element by the name that ``Input type`` has for it, and the name that ceilings have.
_TYPES: dict[str, tuple[int, str | None]] = {
    "double": (8, "F64"),
    "float": (4, "F32"),
    "c10::Half": (2, "F16"),
    "c10::BFloat16": (2, "BF16"),
    "c10::Float8_e4m3fn": (1, "F8"),
    "c10::Float8_e4m3fnuz": (1, "F8"),
    "c10::Float8_e5m2": (1, "F8"),
    "c10::Float8_e5m2fnuz": (1, "F8"),
    "long int": (8, None),
    "long": (8, None),
    "int": (4, None),
    "short int": (2, None),
    "short": (2, None),
    "signed char": (1, "I8"),
    "unsigned char": (1, None),
    "bool": (1, None),
}
#: What elements of these types become before a vector unit computes with them (ATen/OpMathType.h).
_COMPUTED_AS_FLOAT = ("F16", "BF16", "F8")


@frozen
class Work:
    """Of one call. ``pipe`` is the one with the highest rate for such work: matrix work has matrix units."""

    formula: str
    flops: int
    bytes: int
    data_type: str | None
    pipe: Pipe


@frozen
class NoWork:
    """Why nothing is modelled."""

    reason: str


@frozen
class _Tensor:
    shape: tuple[int, ...]
    size: int  # bytes of an element
    data_type: str | None

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.numel * self.size


class _Unknown(Exception):  # noqa: N818 - it is no error: the operator has no figure
    """Why a formula can't be applied to these inputs."""


@frozen
class _Call:
    """The arguments: tensors by place (``None`` for what is none), and the texts of scalars."""

    tensors: tuple[_Tensor | None, ...]
    scalars: tuple[str, ...]

    def tensor(self, place: int) -> _Tensor:
        argument = self.tensors[place] if place < len(self.tensors) else None
        if argument is None:
            raise _Unknown(f"argument {place} is no tensor of a known type")
        return argument

    def optional(self, place: int) -> _Tensor | None:
        return self.tensors[place] if place < len(self.tensors) else None

    def scalar(self, place: int, what: str) -> str:
        text = self.scalars[place] if place < len(self.scalars) else ""
        if not text:
            raise _Unknown(f"{what} is not recorded")
        return text

    def flag(self, place: int, what: str) -> bool:
        text = self.scalar(place, what)
        if text not in ("True", "False"):
            raise _Unknown(f"{what} is {text[:20]!r}")
        return text == "True"

    def numbers(self, place: int, what: str) -> list[int]:
        text = self.scalar(place, what)
        try:
            values: list[int] = msgspec.json.decode(text, type=list[int])
        except msgspec.DecodeError:
            try:
                values = [int(text)]
            except ValueError:
                raise _Unknown(f"{what} is {text[:20]!r}") from None
        return values

    def flags(self, place: int, what: str) -> list[bool]:
        words = self.scalar(place, what).strip("[] ").replace(",", " ").split()
        if not words or set(words) - {"True", "False"}:
            raise _Unknown(f"{what} is not recorded")
        return [word == "True" for word in words]


Formula = Callable[[_Call], tuple[int, int, _Tensor]]


@frozen
class _Rule:
    """``compute`` gives operations, bytes and a tensor of the type that is computed with."""

    name: str
    pipe: Pipe
    source: str
    compute: Formula


def _shape(tensor: _Tensor, rank: int) -> tuple[int, ...]:
    if len(tensor.shape) != rank:
        raise _Unknown(f"a tensor of the shape {list(tensor.shape)} is not of rank {rank}")
    return tensor.shape


def _product(
    a: _Tensor, b: _Tensor, *others: _Tensor | None, batch: bool = False, result_bytes: int | None = None
) -> tuple[int, int, _Tensor]:
    """2 M N K, times the batch. The result is of the type of ``a`` unless its size is given."""
    *left, m, k = _shape(a, 3 if batch else 2)
    *right, k2, n = _shape(b, 3 if batch else 2)
    if k != k2 or left != right:
        raise _Unknown("the shapes of the factors don't fit")
    items = math.prod(left)
    extra = sum(other.bytes for other in others if other is not None)
    size = a.size if result_bytes is None else result_bytes
    return 2 * items * m * n * k, a.bytes + b.bytes + items * m * n * size + extra, a


def _mm(call: _Call) -> tuple[int, int, _Tensor]:
    return _product(call.tensor(0), call.tensor(1))


def _int_mm(call: _Call) -> tuple[int, int, _Tensor]:
    return _product(call.tensor(0), call.tensor(1), result_bytes=4)


def _scaled_mm(call: _Call) -> tuple[int, int, _Tensor]:
    """Of 8-bit floats; the type of the result is a number of ``c10::ScalarType``."""
    size = _RESULT_BYTES.get(call.scalar(6, "the type of the result"))
    if size is None:
        raise _Unknown("the type of the result is another one than those known")
    return _product(call.tensor(0), call.tensor(1), result_bytes=size)


#: c10/core/ScalarType.h: Half, Float, BFloat16, and the four 8-bit floats.
_RESULT_BYTES = {"5": 2, "6": 4, "15": 2, "23": 1, "24": 1, "25": 1, "26": 1}


def _addmm(call: _Call) -> tuple[int, int, _Tensor]:
    return _product(call.tensor(1), call.tensor(2), call.tensor(0))


def _bmm(call: _Call) -> tuple[int, int, _Tensor]:
    return _product(call.tensor(0), call.tensor(1), batch=True)


def _baddbmm(call: _Call) -> tuple[int, int, _Tensor]:
    return _product(call.tensor(1), call.tensor(2), call.tensor(0), batch=True)


def _mv(call: _Call) -> tuple[int, int, _Tensor]:
    a, x = call.tensor(0), call.tensor(1)
    m, k = _shape(a, 2)
    if _shape(x, 1) != (k,):
        raise _Unknown("the shapes of the factors don't fit")
    return 2 * m * k, a.bytes + x.bytes + m * a.size, a


@frozen
class _Geometry:
    stride: list[int]
    padding: list[int]
    dilation: list[int]
    transposed: bool


def _convolution(stride: int, padding: int, dilation: int, transposed: int | None) -> Formula:
    """2 N Cout prod(out) (Cin / groups) prod(kernel); the places are those of the arguments."""

    def compute(call: _Call) -> tuple[int, int, _Tensor]:
        x, weight = call.tensor(0), call.tensor(1)
        geometry = _Geometry(
            call.numbers(stride, "the stride"),
            call.numbers(padding, "the padding"),
            call.numbers(dilation, "the dilation"),
            transposed is not None and call.flag(transposed, "whether it is transposed"),
        )
        flops, output = _convolved(x, weight, geometry)
        bias = call.optional(2)
        extra = bias.bytes if bias is not None and len(bias.shape) == 1 else 0
        return flops, x.bytes + weight.bytes + output * x.size + extra, x

    return compute


def _convolved(x: _Tensor, weight: _Tensor, geometry: _Geometry) -> tuple[int, int]:
    """Operations, and elements of the output."""
    spatial, kernel = x.shape[2:], weight.shape[2:]
    rank = len(spatial)
    if not 1 <= rank <= 3 or len(kernel) != rank:
        raise _Unknown(f"an input of {len(x.shape)} dimensions with a weight of {len(weight.shape)}")
    stride, padding, dilation = (
        values * rank if len(values) == 1 else values
        for values in (geometry.stride, geometry.padding, geometry.dilation)
    )
    if not len(stride) == len(padding) == len(dilation) == rank or min(stride) < 1:
        raise _Unknown("stride, padding or dilation don't fit the shapes")
    if geometry.transposed:
        raise _Unknown("transposed convolutions have no formula here")
    out = [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, s, p, d in zip(spatial, kernel, stride, padding, dilation, strict=True)
    ]
    output = x.shape[0] * weight.shape[0] * math.prod(out)
    return 2 * output * math.prod(weight.shape[1:]), output


def _convolution_backward(call: _Call) -> tuple[int, int, _Tensor]:
    """One forward for the gradient of the input, one for that of the weight, as far as they are asked for."""
    gradient, x, weight = call.tensor(0), call.tensor(1), call.tensor(2)
    if call.flag(7, "whether it is transposed"):
        raise _Unknown("transposed convolutions have no formula here")
    wanted = call.flags(10, "which gradients are asked for")
    if len(wanted) != 3:
        raise _Unknown("which gradients are asked for is not recorded")
    flops = 2 * gradient.numel * math.prod(weight.shape[1:])
    to_input, to_weight, to_bias = wanted
    read = gradient.bytes + (x.bytes if to_weight else 0) + (weight.bytes if to_input else 0)
    written = (x.bytes if to_input else 0) + (weight.bytes if to_weight else 0)
    bias = weight.shape[0] if to_bias else 0
    bias_flops = gradient.numel - bias if to_bias else 0
    return (
        flops * (to_input + to_weight) + bias_flops,
        read + written + bias * weight.size,
        gradient,
    )


def _attention(causal: int, *, heads_last: bool, first: int = 0, lengths: int | None = None) -> Formula:
    """Two products over the pairs of query and key that are not masked: 2 B H pairs (D + Dv).

    ``heads_last``: shapes are (B, S, H, D), else (B, H, S, D). ``lengths``: where the lengths of packed
    sequences stand, which shapes don't tell. ``first`` is 1 for a backward, where the output's gradient
    stands before the query: five products (flop_counter's ``sdpa_backward_flop_count``).
    """

    def compute(call: _Call) -> tuple[int, int, _Tensor]:
        if lengths is not None and call.optional(lengths) is not None:
            raise _Unknown("the lengths of packed sequences are not recorded")
        query, key, value = (call.tensor(first + i) for i in range(3))
        (b, h, s, d), (_, kv, keys, _), (_, _, _, dv) = (
            _heads_first(tensor, heads_last) for tensor in (query, key, value)
        )
        if h % max(kv, 1):
            raise _Unknown("the number of heads is no multiple of that of keys")
        pairs = _pairs(call.scalar(causal, "whether it is causal"), s, keys)
        row_sums = b * h * s * 4
        output = b * h * s * dv * query.size
        if not first:
            moved = query.bytes + key.bytes + value.bytes + output + row_sums
            return 2 * b * h * pairs * (d + dv), moved, query
        # Scores again, then the gradients of probabilities, values, queries and keys.
        flops = 2 * b * h * pairs * (3 * d + 2 * dv)
        moved = 2 * (query.bytes + key.bytes + value.bytes) + 2 * output + row_sums
        return flops, moved, query

    return compute


def _heads_first(tensor: _Tensor, heads_last: bool) -> tuple[int, int, int, int]:
    a, b, c, d = _shape(tensor, 4)
    return (a, c, b, d) if heads_last else (a, b, c, d)


def _pairs(causal: str, queries: int, keys: int) -> int:
    """Pairs of query and key that count: all, or a triangle with the diagonal."""
    if causal in ("False", "0"):
        return queries * keys
    if causal not in ("True", "1", "2"):
        raise _Unknown(f"the mask is {causal[:20]!r}")
    if queries != keys:
        raise _Unknown("a causal mask over different lengths: where its diagonal lies is not recorded")
    return queries * (queries + 1) // 2


def _elementwise(arity: int, operations: int = 1, *, result_bytes: int | None = None) -> Formula:
    """``operations`` for each element of the result, to which the first ``arity`` arguments are broadcast.

    What stands behind them is a scalar, or the tensor that takes the result.
    """

    def compute(call: _Call) -> tuple[int, int, _Tensor]:
        tensors = [tensor for tensor in call.tensors[:arity] if tensor is not None]
        if not tensors:
            raise _Unknown("no argument is a tensor of a known type")
        numel = math.prod(_broadcast([tensor.shape for tensor in tensors]))
        # Numbers of Python are tensors of one element here, of a wide type that the result does not take.
        widest = max(tensors, key=lambda t: (t.numel > 1, t.data_type is not None, t.size))
        size = widest.size if result_bytes is None else result_bytes
        return operations * numel, sum(t.bytes for t in tensors) + numel * size, widest

    return compute


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    rank = max(len(shape) for shape in shapes)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        distinct = {size for size in sizes if size != 1}
        if len(distinct) > 1:
            raise _Unknown("the shapes don't fit each other")
        result.append(distinct.pop() if distinct else 1)
    return tuple(result)


def _copy(call: _Call) -> tuple[int, int, _Tensor]:
    target, source = call.tensor(0), call.tensor(1)
    return 0, target.bytes + source.bytes, target


def _fill(call: _Call) -> tuple[int, int, _Tensor]:
    return 0, call.tensor(0).bytes, call.tensor(0)


def _reduction(*, result_bytes: int | None = None) -> Formula:
    """One operation for each element; the dimensions stand behind the input, and a wanted type behind them.

    Without dimensions everything becomes one element.
    """

    def compute(call: _Call) -> tuple[int, int, _Tensor]:
        x = call.tensor(0)
        remaining = 1
        given = [text for text in call.scalars[1:2] if text]
        if given and len(call.scalars) > 2:
            rank = max(len(x.shape), 1)
            gone = {dim % rank for dim in call.numbers(1, "the dimension")} or set(range(rank))
            remaining = math.prod(size for i, size in enumerate(x.shape) if i not in gone)
        if (given and len(call.scalars) <= 2) or any(call.scalars[3:4]):
            raise _Unknown("the result is of another type")
        size = x.size if result_bytes is None else result_bytes
        return x.numel, x.bytes + remaining * size, x

    return compute


def _layer_norm(plain: int, weights: tuple[int, ...], statistics: int) -> Formula:
    """``plain`` operations for each element and one for each weight; 4-byte ``statistics`` for each row."""

    def compute(call: _Call) -> tuple[int, int, _Tensor]:
        x = call.tensor(0)
        width = math.prod(call.numbers(1, "what is normalised"))
        if width < 1 or x.numel % width:
            raise _Unknown("what is normalised does not fit the shape")
        given = [t for place in weights if (t := call.optional(place)) is not None]
        moved = 2 * x.bytes + sum(t.bytes for t in given) + 4 * statistics * (x.numel // width)
        return x.numel * (plain + len(given)), moved, x

    return compute


def _group_norm(call: _Call) -> tuple[int, int, _Tensor]:
    x = call.tensor(0)
    given = [t for place in (1, 2) if (t := call.optional(place)) is not None]
    groups = call.numbers(3, "the batch")[0] * call.numbers(6, "the number of groups")[0]
    moved = 2 * x.bytes + sum(t.bytes for t in given) + 2 * groups * x.size
    return x.numel * (5 + len(given)), moved, x


def _batch_norm(call: _Call) -> tuple[int, int, _Tensor]:
    x = call.tensor(0)
    training = call.flag(5, "whether it trains")
    channels = [t for place in range(1, 5) if (t := call.optional(place)) is not None and t.shape]
    moved = 2 * x.bytes + sum(t.bytes for t in channels)
    if training:  # running mean and variance are written too, and those of the batch
        moved += sum(t.bytes for place in (3, 4) if (t := call.optional(place)) is not None)
        moved += 8 * x.shape[1] if len(x.shape) > 1 else 0
    # Training: mean 1, deviation 1, its square 1, sum 1, scale 1, weight 1, bias 1; otherwise the last four
    # with a known mean: subtract, scale, weight, bias.
    return x.numel * (7 if training else 4), moved, x


def _batch_norm_backward(call: _Call) -> tuple[int, int, _Tensor]:
    gradient, x = call.tensor(0), call.tensor(1)
    channels = [t for place in range(2, 7) if (t := call.optional(place)) is not None and t.shape]
    # xhat 2, sum of g 1, of g xhat 2, then w r (g - a - xhat b): 4.
    width = x.shape[1] if len(x.shape) > 1 else 0
    moved = gradient.bytes + 2 * x.bytes + sum(t.bytes for t in channels) + 2 * width * x.size
    return 9 * x.numel, moved, x


def _embedding(call: _Call) -> tuple[int, int, _Tensor]:
    weight, index = call.tensor(0), call.tensor(1)
    _, width = _shape(weight, 2)
    return 0, index.bytes + 2 * index.numel * width * weight.size, weight


def _index_select(call: _Call) -> tuple[int, int, _Tensor]:
    """Rows of an embedding: what ``aten::embedding`` launches."""
    x, index = call.tensor(0), call.tensor(2)
    _, width = _shape(x, 2)
    return 0, index.bytes + 2 * index.numel * width * x.size, x


def _embedding_backward(call: _Call) -> tuple[int, int, _Tensor]:
    gradient, index = call.tensor(0), call.tensor(1)
    rows = call.numbers(2, "the number of rows")[0]
    width = gradient.shape[-1] if gradient.shape else 1
    return gradient.numel, gradient.bytes + index.bytes + rows * width * gradient.size, gradient


def _rules() -> dict[str, _Rule]:
    rules: dict[str, _Rule] = {}

    def add(name: str, pipe: Pipe, source: str, compute: Formula, *operators: str) -> None:
        rule = _Rule(name, pipe, source, compute)
        rules.update(dict.fromkeys(operators, rule))

    matrix, vector = Pipe.MFMA, Pipe.VALU
    gemm = f"2 M N K: {_COUNTER}, mm_flop"
    add("gemm", matrix, gemm, _mm, "aten::mm")
    add("gemm", matrix, gemm, _scaled_mm, "aten::_scaled_mm")
    add("gemm", matrix, gemm, _int_mm, "aten::_int_mm")
    add("gemm", matrix, gemm, _addmm, "aten::addmm", "aten::addmm_", "aten::_addmm_activation")
    add("gemm", vector, gemm, _mv, "aten::mv")
    batched = f"2 B M N K: {_COUNTER}, bmm_flop"
    add("batched gemm", matrix, batched, _bmm, "aten::bmm")
    add("batched gemm", matrix, batched, _baddbmm, "aten::baddbmm", "aten::baddbmm_")
    conv = f"2 N Cout prod(out) Cin/groups prod(kernel): {_COUNTER}, conv_flop_count"
    plain = ("aten::conv1d", "aten::conv2d", "aten::conv3d")
    add("convolution", matrix, conv, _convolution(3, 4, 5, None), *plain)
    add("convolution", matrix, conv, _convolution(3, 4, 5, 6), "aten::convolution", "aten::_convolution")
    # The order of the arguments differs: padding before stride, with a bias and without.
    miopen = ("aten::miopen_convolution", "aten::miopen_depthwise_convolution")
    add("convolution", matrix, conv, _convolution(4, 3, 5, None), *miopen)
    cudnn = ("aten::cudnn_convolution",)
    add("convolution", matrix, conv, _convolution(3, 2, 4, None), *cudnn)
    backward = f"{_COUNTER}, conv_backward_flop"
    add("convolution backward", matrix, backward, _convolution_backward, "aten::convolution_backward")
    sdpa = f"2 B H pairs (D + Dv): {_COUNTER}, sdpa_flop_count, pairs under a causal mask only"
    add_attention = [
        ("aten::_flash_attention_forward", _attention(8, heads_last=True, lengths=3)),
        ("aten::_scaled_dot_product_flash_attention", _attention(4, heads_last=False)),
        ("aten::_efficient_attention_forward", _attention(9, heads_last=True, lengths=4)),
        ("aten::_scaled_dot_product_efficient_attention", _attention(6, heads_last=False)),
        ("aten::_scaled_dot_product_cudnn_attention", _attention(6, heads_last=False)),
    ]
    for operator, compute in add_attention:
        add("attention", matrix, sdpa, compute, operator)
    sdpa_backward = f"2 B H pairs (3 D + 2 Dv): {_COUNTER}, sdpa_backward_flop_count"
    for operator, compute in (
        ("aten::_flash_attention_backward", _attention(11, heads_last=True, first=1, lengths=6)),
        ("aten::_scaled_dot_product_flash_attention_backward", _attention(11, heads_last=False, first=1)),
        ("aten::_efficient_attention_backward", _attention(14, heads_last=True, first=1, lengths=6)),
        ("aten::_scaled_dot_product_efficient_attention_backward", _attention(11, heads_last=False, first=1)),
    ):
        add("attention backward", matrix, sdpa_backward, compute, operator)
    definition = "definition of the operator, one operation for each element and step"
    for (arity, count), names in _ELEMENTWISE.items():
        aten = tuple(f"aten::{name}" for name in names.split())
        both = (*aten, *(f"{name}_" for name in aten))
        add("elementwise", vector, definition, _elementwise(arity, count), *both)
    for arity, names in ((2, "eq ne lt le gt ge"), (1, "logical_not isnan isinf isfinite")):
        compared = tuple(f"aten::{name}" for name in names.split())
        add("elementwise", vector, definition, _elementwise(arity, result_bytes=1), *compared)
    moved = "each element read and written once"
    add("copy", vector, moved, _copy, "aten::copy_")
    add("copy", vector, moved, _fill, "aten::fill_", "aten::zero_")
    for size, names in ((None, "sum mean amax amin prod"), (1, "all any"), (8, "argmax argmin")):
        reducing = tuple(f"aten::{name}" for name in names.split())
        add("reduction", vector, definition, _reduction(result_bytes=size), *reducing)
    layer = "mean 1, deviation 1, square 1, sum 1, scale 1, weight 1, bias 1 for each element"
    add("norm", vector, layer, _layer_norm(5, (2, 3), 2), "aten::native_layer_norm")
    add("norm", vector, layer, _group_norm, "aten::native_group_norm")
    rms = "square 1, sum 1, scale 1, weight 1 for each element"
    add("norm", vector, rms, _layer_norm(3, (2,), 1), "aten::_fused_rms_norm")
    batch = ("aten::native_batch_norm", "aten::miopen_batch_norm", "aten::cudnn_batch_norm")
    add("norm", vector, layer, _batch_norm, *batch)
    add(
        "norm backward",
        vector,
        "9 for each element",
        _batch_norm_backward,
        "aten::native_batch_norm_backward",
    )
    add("embedding", vector, moved, _embedding, "aten::embedding")
    add("embedding", vector, moved, _index_select, "aten::index_select")
    rows = "one addition for each element of the gradient"
    add("embedding backward", vector, rows, _embedding_backward, "aten::embedding_dense_backward")
    return rules


#: (arguments, operations for each element of the result): a function such as exp counts as one operation.
_ELEMENTWISE = {
    (1, 1): (
        "neg abs exp exp2 log log2 log1p expm1 sqrt rsqrt sin cos tan tanh sigmoid silu gelu relu reciprocal"
        " square erf floor ceil round sign bitwise_not hardtanh leaky_relu elu softplus"
    ),
    (2, 1): "add sub rsub mul div pow maximum minimum clamp_min clamp_max bitwise_and bitwise_or",
    (3, 1): "clamp where",
    (2, 2): "threshold_backward sigmoid_backward tanh_backward silu_backward gelu_backward",
    (3, 2): "addcmul addcdiv lerp",
}
FORMULAS = _rules()


def operator_work(name: str, inputs: Inputs) -> Work | NoWork:
    """Operations and bytes of one call of ``name``."""
    rule = FORMULAS.get(name)
    if rule is None:
        return NoWork("no formula for this operator")
    if not inputs.dims:
        return NoWork("shapes were not recorded (record_shapes=True)")
    try:
        flops, moved, tensor = rule.compute(_call(inputs))
    except _Unknown as reason:
        return NoWork(str(reason))
    data_type = tensor.data_type
    if rule.pipe is Pipe.VALU and data_type in _COMPUTED_AS_FLOAT:
        data_type = "F32"
    return Work(rule.name, flops, moved, data_type, rule.pipe)


def _call(inputs: Inputs) -> _Call:
    dims, types, scalars = (_list(text) for text in (inputs.dims, inputs.types, inputs.concrete))
    tensors = tuple(_tensor(shape, kind) for shape, kind in zip(dims, types, strict=False))
    return _Call(tensors, tuple(text if isinstance(text, str) else "" for text in scalars))


def _list(text: bytes) -> list[Any]:
    value = msgspec.json.decode(text) if text else []
    return value if isinstance(value, list) else []


def _tensor(shape: object, kind: object) -> _Tensor | None:
    known = _TYPES.get(kind) if isinstance(kind, str) else None
    if known is None or not isinstance(shape, list):
        return None
    if not all(type(size) is int and 0 <= size < 1 << 48 for size in shape) or math.prod(shape) >= 1 << 60:
        return None
    return _Tensor(tuple(shape), *known)
