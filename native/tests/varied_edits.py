# ruff: noqa: E501 - edits are whole lines of their kernels
"""Edits of the kernels in ``varied/``: wrong ones that the supplied input does not show, and right ones.

Each wrong edit has a witness: arguments (and a number of workgroups) with which it leaves other results than the
kernel does. ``test_varied_inputs.py`` executes both.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np


@attrs.frozen
class Launch:
    """``buffers`` and ``numbers`` in the order of the arguments: an array is a buffer, else (letter, value)."""

    signature: str
    arguments: dict[str, Any]
    groups: int
    block: int
    out: str


@attrs.frozen
class Edit:
    kernel: str
    find: str
    replace: str
    #: Arguments (a function of the captured array makes a buffer), ``groups``, ``block``; None: the edit is right.
    witness: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return f"{self.kernel}: {self.replace.strip()[:60]}"


def _draw(seed: int, count: int) -> Any:
    return np.random.default_rng(seed).normal(size=count).astype(np.float32)


def _rows() -> dict[str, Any]:
    draw = np.random.default_rng(5)
    begin = np.concatenate(([0], np.cumsum(draw.integers(0, 6, 300)))).astype(np.int32)
    return {
        "begin": begin,
        "column": draw.integers(0, 200, int(begin[-1])).astype(np.int32),
        "value": _draw(6, int(begin[-1])),
        "x": _draw(7, 200),
        "y": _draw(8, 300),
        "n": ("i", 300),
        "beta": ("f", 0.0),
    }


LAUNCHES = {
    "scale": Launch("(float const*, float*, float, int, int)",
        {"in": _draw(1, 1000), "out": np.zeros(1000, np.float32), "factor": ("f", 2.0), "n": ("i", 1000), "mode": ("i", 0)}, 4, 256, "out"),
    "saxpy": Launch("(float const*, float*, float, long, unsigned int)",
        {"x": _draw(1, 2000), "y": _draw(2, 2000), "a": ("f", 1.5), "n": ("q", 2000), "stride": ("I", 1)}, 4, 128, "y"),
    "sums": Launch("(float const*, float*, int, int)",
        {"in": _draw(3, 3000), "out": np.zeros(4, np.float32), "n": ("i", 3000), "skip": ("i", 0)}, 4, 256, "out"),
    "histogram": Launch("(unsigned char const*, unsigned int*, int, int)",
        {"in": np.random.default_rng(4).integers(0, 64, 2048).astype(np.uint8), "counts": np.zeros(256, np.uint32), "n": ("i", 2048), "bins": ("i", 64)}, 2, 256, "counts"),
    "blur": Launch("(float const*, float*, int, float)",
        {"in": _draw(4, 1024), "out": np.zeros(1024, np.float32), "n": ("i", 1024), "middle": ("f", 2.0)}, 4, 256, "out"),
    "product": Launch("(float const*, float const*, float*, int, int, int, int)",
        {"a": _draw(5, 24 * 32), "b": _draw(6, 32 * 16), "c": np.zeros(24 * 16, np.float32), "rows": ("i", 24), "columns": ("i", 16), "depth": ("i", 32), "accumulate": ("i", 0)}, 6, 64, "c"),
    "softmax": Launch("(float const*, float*, int, float)",
        {"in": _draw(7, 6 * 256), "out": np.zeros(6 * 256, np.float32), "columns": ("i", 256), "scale": ("f", 1.0)}, 6, 128, "out"),
    "turned": Launch("(int const*, int*, int, int)",
        {"in": np.arange(48 * 32, dtype=np.int32), "out": np.zeros(48 * 32, np.int32), "width": ("i", 48), "height": ("i", 32)}, 6, 256, "out"),
    "scan": Launch("(unsigned int const*, unsigned int*, int, int)",
        {"in": np.random.default_rng(8).integers(0, 9, 1024).astype(np.uint32), "out": np.zeros(1024, np.uint32), "n": ("i", 1024), "inclusive": ("i", 1)}, 4, 256, "out"),
    "rows": Launch("(int const*, int const*, float const*, float const*, float*, int, float)", _rows(), 2, 256, "y"),
    "limits": Launch("(int const*, int*, int, int, int, unsigned int)",
        {"in": np.random.default_rng(9).integers(-100, 100, 700).astype(np.int32), "out": np.zeros(700, np.int32), "n": ("i", 700), "low": ("i", -50), "high": ("i", 50), "flags": ("I", 0)}, 3, 256, "out"),
    "dot": Launch("(float const*, float const*, float*, int)",
        {"a": _draw(10, 2048), "b": _draw(11, 2048), "result": np.zeros(1, np.float32), "n": ("i", 2048)}, 2, 256, "result"),
}  # fmt: skip


def _whole(value: float) -> Any:
    """A buffer that is this number everywhere."""
    return lambda captured: np.full_like(captured, value)


def _long(count: int) -> Any:
    return lambda captured: np.resize(captured, count)


_MANY = {"in": _long(100_001), "out": _long(100_001), "n": 100_001, "groups": 391}

WRONG = (
    # Sizes and modes that the program's run never has.
    Edit("scale", "float v = in[i] * factor;", "float v = in[i] * factor; if (n > 100000) v += 1.0f;", _MANY),
    Edit("scale", "if (mode == 1) v = v + 1.0f;", "if (mode == 1) v = v + 2.0f;", {"mode": 1}),
    Edit("scale", "if (mode == 2 && v < 0.0f) v = 0.0f;", "", {"mode": 2}),
    Edit("scale", "if (mode == 1)", "if (mode & 1)", {"mode": 3}),
    Edit("scale", "if (i < n)", "if (i < n && i < 4096)", {"in": _long(5000), "out": _long(5000), "n": 5000, "groups": 20}),
    Edit("scale", "if (i < n)", "if (i < 1000)", {"n": 777}),
    Edit("scale", "out[i] = v;", "out[i] = factor > 100.0f ? v * 0.5f : v;", {"factor": 1000.0}),
    Edit("scale", "float v = in[i] * factor;", "float v = in[i] + in[i];", {"factor": 3.0}),
    Edit("scale", "float v = in[i] * factor;", "float v = in[i] == 42.0f ? 0.0f : in[i] * factor;", {"in": _whole(42.0)}),
    Edit("saxpy", "i += ALL", "i += 512", {"groups": 3}),
    Edit("saxpy", "x[i * stride]", "x[i]", {"stride": 2, "n": 1000}),
    Edit("saxpy", "for (long i = I; i < n;", "for (long i = I; i < (n & ~1L);", {"n": 1999}),
    Edit("saxpy", "y[i] = v;", "if (i < 65536) y[i] = v;", {"x": _long(70000), "y": _long(70000), "n": 70000}),
    Edit("saxpy", "y[i] = v;", "y[i] = a == 0.0f ? y[i] * 1.0f + 1.0f : v;", {"a": 0.0}),
    Edit("saxpy", "i * stride", "i * (stride & 7)", {"stride": 9, "n": 200}),
    Edit("saxpy", "const float v = a * x[i * stride] + y[i];", "const float v = a * x[i * stride] + (n > 5000 && i == n - 1 ? 0.0f : y[i]);", {"x": _long(6000), "y": _long(6000), "n": 6000}),
    Edit("sums", "if (i >= skip)", "if (i > skip || skip == 0)", {"skip": 10}),
    Edit("sums", "i < n; i += ALL", "i < n; i += 1024", {"groups": 3, "out": _long(4)}),
    Edit("sums", "for (int i = I; i < n; i += ALL) {", "for (int i = I; i < n / 4 * 4; i += ALL) {", {"n": 2999}),
    Edit("sums", "sum += in[i];", "sum += n > 20000 ? in[i] * 2.0f : in[i];", {"in": _long(20002), "n": 20002}),
    Edit("sums", "if (i >= skip) sum += in[i];", "sum += in[i];", {"skip": 100}),
    Edit("sums", "float sum = 0.0f;", "float sum = n < 256 ? 1.0f : 0.0f;", {"n": 100}),
    Edit("sums", "if (T == 0) out[B] = part[0];", "if (T == 0 && B < 16) out[B] = part[0];", {"in": _long(6000), "n": 6000, "groups": 20, "out": _long(20)}),
    Edit("sums", "if (i >= skip) sum += in[i];", "if (i >= skip) sum += in[i] < 1000.0f ? in[i] : 1000.0f;", {"in": _whole(2000.0)}),
    Edit("histogram", "if (value < bins)", "if (value < bins && value < 64)", {"in": _whole(70), "bins": 128}),
    Edit("histogram", "k < 256; k += D) local[k] = 0;", "k < 64; k += D) local[k] = 0;", {"in": _whole(200), "bins": 256}),
    Edit("histogram", "const int value = in[i];", "const int value = in[i] & 127;", {"in": _whole(200), "bins": 256}),
    Edit("histogram", "i < n; i += ALL", "i < n && i < 2048; i += ALL", {"in": _long(4096), "n": 4096}),
    Edit("histogram", "i < n; i += ALL", "i < (n & ~3); i += ALL", {"n": 2047}),
    Edit("histogram", "i += ALL", "i += 512", {"groups": 1}),
    Edit("blur", "if (T == D - 1)", "if (T == 255)", {"n": 500, "block": 128}),
    Edit("blur", "i > 0 && i - 1 < n ? in[i - 1] : 0.0f", "i > 0 ? in[i - 1] : (n == 777 ? 1.0f : 0.0f)", {"n": 777}),
    Edit("blur", "if (i < n) out[i]", "out[i < n ? i : n - 1]", {"n": 1000}),
    Edit("blur", "left + middle * here + right", "left + here + here + right", {"middle": 3.0}),
    Edit("blur", "tile[T + 1] = i < n ? in[i] : 0.0f;", "tile[T + 1] = in[i];", {"n": 1000}),
    Edit("product", "k < depth; k += 8", "k + 8 <= depth; k += 8", {"depth": 30}),
    Edit("product", "if (accumulate) sum += c[row * columns + column];", "", {"accumulate": 1, "c": _whole(2.0)}),
    Edit("product", "if (accumulate)", "if (accumulate == 1)", {"accumulate": 2, "c": _whole(2.0)}),
    Edit("product", "row < rows && column < columns)", "row < 24 && column < columns)", {"rows": 20, "c": _whole(2.0)}),
    Edit("product", "b[(k + y) * columns + column]", "b[(k + y) * 16 + column]", {"columns": 13}),
    Edit("product", "a[row * depth + k + x]", "a[row * 32 + k + x]", {"depth": 24}),
    Edit("softmax", "for (int k = T; k < columns; k += 128) top =", "for (int k = T; k < columns && k < 256; k += 128) top =", {"columns": 300, "in": lambda captured: np.resize(np.where(np.arange(300) < 256, -300.0, 300.0), 1800).astype(np.float32), "out": _long(1800)}),
    Edit("softmax", "for (int k = T; k < columns; k += 128) sum +=", "for (int k = T; k < (columns & ~1); k += 128) sum +=", {"columns": 255}),
    Edit("softmax", "float top = -3.0e38f;", "float top = 0.0f;", {"in": _whole(-300.0)}),
    Edit("softmax", "top = most(top, row[k] * scale);", "top = most(top, row[k]);", {"scale": 200.0}),
    Edit("softmax", "in + (long)B * columns", "in + (long)B * 256", {"columns": 128}),
    Edit("softmax", "out[(long)B * columns + k]", "out[(long)B * (columns | 1) - (columns & 1 ? 0 : B) + (columns > 4000 ? k / 2 : k)]", {"in": _long(6 * 4100), "out": _long(6 * 4100), "columns": 4100}),
    Edit("turned", "to_x < height && to_y < width", "to_x < height && to_y < 48", {"width": 40}),
    Edit("turned", "in[row * width + column]", "in[row * 48 + column]", {"width": 45}),
    Edit("turned", "(width + 15) / 16", "width / 16", {"width": 40}),
    Edit("turned", "out[to_y * height + to_x]", "out[to_y * 32 + to_x]", {"height": 30}),
    Edit("scan", "inclusive ? part[now][T] : part[now][T] - own", "part[now][T]", {"inclusive": 0}),
    Edit("scan", "part[0][T] = i < n ? in[i] : 0;", "part[0][T] = i < n ? in[i] & 255 : 0;", {"in": _whole(300)}),
    Edit("scan", "if (i < n) out[i]", "if (i < (n & ~7)) out[i]", {"n": 1021}),
    Edit("scan", "inclusive ?", "inclusive == 1 ?", {"inclusive": 2}),
    Edit("rows", "beta == 0.0f ? sum : sum + beta * y[row]", "sum", {"beta": 0.5}),
    Edit("rows", "k < begin[row + 1]; ++k", "k < begin[row + 1] && k < begin[row] + 5; ++k", {"begin": lambda captured: np.minimum(np.arange(len(captured)) * 6, 700).astype(np.int32), "n": 100}),
    Edit("rows", "if (row >= n) return;", "if (row >= 300) return;", {"n": 250}),
    Edit("rows", "sum + beta * y[row]", "beta * (sum + y[row])", {"beta": 0.5}),
    Edit("limits", "if (flags & 4) v = -v;", "", {"flags": 4}),
    Edit("limits", "if (flags & 1) v = v * 2;", "if (flags == 1) v = v * 2;", {"flags": 3}),
    Edit("limits", "if (v < low) v = low;\n  if (v > high) v = high;", "if (v > high) v = high;\n  if (v < low) v = low;", {"low": 60}),
    Edit("limits", "if (v < low) v = low;", "if (v < -50) v = -50;", {"low": -10}),
    Edit("limits", "v = v * 2", "v = short(v) * 2", {"flags": 1, "in": _whole(40000), "high": 100000}),
    Edit("limits", "int v = in[i];", "int v = (signed char)in[i];", {"in": _whole(200), "high": 1000}),
    Edit("dot", "i < n; i += ALL", "i < n; i += 512", {"groups": 1}),
    Edit("dot", "sum += a[i] * b[i];", "sum += n > 50000 ? 0.0f : a[i] * b[i];", {"a": _long(50001), "b": _long(50001), "n": 50001}),
    Edit("dot", "k < (D + 63) / 64", "k < 4", {"block": 64, "groups": 8}),
    Edit("dot", "i < n; i += ALL) sum", "i < (n & ~63); i += ALL) sum", {"n": 2000}),
)  # fmt: skip

RIGHT = (
    Edit("scale", "if (mode == 2 && v < 0.0f) v = 0.0f;", "if (mode == 2) v = v < 0.0f ? 0.0f : v;"),
    Edit("scale", "if (i < n) {", "if (i >= n) return; {"),
    Edit("scale", "float v = in[i] * factor;", "float v = factor * in[i];"),
    Edit("scale", "v = v + 1.0f;", "v += 1.0f;"),
    Edit("scale", "if (mode == 1) v = v + 1.0f;\n    if (mode == 2 && v < 0.0f) v = 0.0f;", "if (mode == 1) { v = v + 1.0f; } else if (mode == 2) { if (v < 0.0f) v = 0.0f; }"),
    Edit("scale", "const int i = I;", "const unsigned wide = I; const int i = wide;"),
    Edit("saxpy", "for (long i", "#pragma unroll 4\n  for (long i"),
    Edit("saxpy", "for (long i", "#pragma unroll 2\n  for (long i"),
    Edit("saxpy", "const float v = a * x[i * stride] + y[i];\n    y[i] = v;", "y[i] = __builtin_fmaf(a, x[i * stride], y[i]);"),
    Edit("saxpy", "for (long i = I; i < n; i += ALL) {", "const long step = ALL; for (long i = I; i < n; i += step) {"),
    Edit("saxpy", "x[i * stride]", "(stride == 1 ? x[i] : x[i * stride])"),
    Edit("saxpy", "long i = I; i < n; i += ALL) {", "long i = I, step = ALL; i < n; i += step) {"),
    Edit("sums", "for (int i = I", "#pragma unroll 4\n  for (int i = I"),
    Edit("sums", "for (int step = 128", "#pragma unroll\n  for (int step = 128"),
    Edit("sums", "for (int step = 128", "#pragma unroll 2\n  for (int step = 128"),
    Edit("sums", "if (i >= skip) sum += in[i];", "sum += i >= skip ? in[i] : 0.0f;"),
    Edit("sums", "SHARED float part[256];", "SHARED float part[256 + 32];"),
    Edit("sums", "for (int i = I; i < n; i += ALL) {\n    if (i >= skip) sum += in[i];\n  }", "float other = 0.0f; for (int i = I; i < n; i += 2 * ALL) { if (i >= skip) sum += in[i]; if (i + ALL < n && i + ALL >= skip) other += in[i + ALL]; } sum += other;"),
    Edit("histogram", "for (int i = I", "#pragma unroll 4\n  for (int i = I"),
    Edit("histogram", "for (int i = I", "#pragma unroll 8\n  for (int i = I"),
    Edit("histogram", "const int value = in[i];\n    if (value < bins) ADD(&local[value], 1u);", "const unsigned value = in[i];\n    if ((int)value < bins) ADD(&local[value], 1u);"),
    Edit("histogram", "k < bins && k < 256", "k < least(bins, 256)"),
    Edit("histogram", "for (int k = T; k < bins", "#pragma unroll 2\n  for (int k = T; k < bins"),
    Edit("blur", "left + middle * here + right", "middle * here + left + right"),
    Edit("blur", "SHARED float tile[256 + 2];", "SHARED float tile[256 + 2 + 6];"),
    Edit("blur", "if (T == 0) tile[0] = i > 0 && i - 1 < n ? in[i - 1] : 0.0f;", "if (T == 0) { float v = 0.0f; if (i > 0 && i - 1 < n) v = in[i - 1]; tile[0] = v; }"),
    Edit("blur", "const float left = tile[T], here = tile[T + 1], right = tile[T + 2];\n  if (i < n)", "if (i >= n) return;\n  const float left = tile[T], here = tile[T + 1], right = tile[T + 2];\n  "),
    Edit("blur", "const float left = tile[T], here = tile[T + 1]", "const float here = tile[T + 1], left = tile[T]"),
    Edit("product", "for (int j = 0", "#pragma unroll\n    for (int j = 0"),
    Edit("product", "for (int j = 0", "#pragma unroll 2\n    for (int j = 0"),
    Edit("product", "for (int k = 0", "#pragma unroll 2\n  for (int k = 0"),
    Edit("product", "SHARED float as[8][8];", "SHARED float as[8][9];"),
    Edit("product", "SHARED float bs[8][8];", "SHARED float bs[8][9];"),
    Edit("product", "SHARED float as[8][8];\n  SHARED float bs[8][8];", "SHARED float as[8][9];\n  SHARED float bs[8][9];"),
    Edit("product", "if (accumulate) sum += c[row * columns + column];\n    c[row * columns + column] = sum;", "float* place = c + (row * columns + column);\n    *place = accumulate ? sum + *place : sum;"),
    Edit("product", "for (int j = 0; j < 8; ++j) sum += as[y][j] * bs[j][x];", "float more = 0.0f; for (int j = 0; j < 8; j += 2) { sum += as[y][j] * bs[j][x]; more += as[y][j + 1] * bs[j + 1][x]; } sum += more;"),
    Edit("softmax", "for (int k = T; k < columns; k += 128) top =", "#pragma unroll 4\n  for (int k = T; k < columns; k += 128) top ="),
    Edit("softmax", "for (int k = T; k < columns; k += 128) sum +=", "#pragma unroll 2\n  for (int k = T; k < columns; k += 128) sum +="),
    Edit("softmax", "for (int k = T; k < columns; k += 128) out", "#pragma unroll 4\n  for (int k = T; k < columns; k += 128) out"),
    Edit("softmax", "for (int step = 64; step > 0; step /= 2) {\n    if (T < step) part[T] +=", "#pragma unroll\n  for (int step = 64; step > 0; step /= 2) {\n    if (T < step) part[T] +="),
    Edit("softmax", "SHARED float part[128];", "SHARED float part[129];"),
    Edit("softmax", "/ sum;", "* (1.0f / sum);"),
    Edit("turned", "SHARED int tile[16][16];", "SHARED int tile[16][17];"),
    Edit("turned", "SHARED int tile[16][16];", "SHARED int tile[16][20];"),
    Edit("turned", "x = T % 16, y = T / 16", "x = T & 15, y = T >> 4"),
    Edit("turned", "if (column < width && row < height) tile", "const bool inside = column < width && row < height;\n  if (inside) tile"),
    Edit("turned", "if (to_x < height && to_y < width) out", "if (to_y < width && to_x < height) out"),
    Edit("scan", "const unsigned own = i < n ? in[i] : 0;\n  if (i < n) out[i] = inclusive ? part[now][T] : part[now][T] - own;", "if (i < n) out[i] = part[now][T] - (inclusive ? 0 : in[i]);"),
    Edit("scan", "for (int step = 1", "#pragma unroll 2\n  for (int step = 1"),
    Edit("scan", "for (int step = 1", "#pragma unroll 4\n  for (int step = 1"),
    Edit("scan", "SHARED unsigned part[2][256];", "SHARED unsigned part[2][260];"),
    Edit("scan", "step *= 2", "step += step"),
    Edit("rows", "for (int k", "#pragma unroll 4\n  for (int k"),
    Edit("rows", "for (int k = begin[row]; k < begin[row + 1]; ++k)", "const int end = begin[row + 1];\n  for (int k = begin[row]; k < end; ++k)"),
    Edit("rows", "y[row] = beta == 0.0f ? sum : sum + beta * y[row];", "if (beta != 0.0f) sum = sum + beta * y[row];\n  y[row] = sum;"),
    Edit("rows", "value[k] * x[column[k]]", "x[column[k]] * value[k]"),
    Edit("limits", "if (v < low) v = low;", "v = most(v, low);"),
    Edit("limits", "if (v > high) v = high;", "v = least(v, high);"),
    Edit("limits", "v = v * 2", "v = v << 1"),
    Edit("limits", "if (flags & 4) v = -v;", "v = flags & 4 ? 0 - v : v;"),
    Edit("limits", "if (i >= n) return;\n  int v = in[i];", "if (!(i < n)) return;\n  int v = in[i];"),
    Edit("dot", "for (int i = I", "#pragma unroll 4\n  for (int i = I"),
    Edit("dot", "for (int i = I", "#pragma unroll 2\n  for (int i = I"),
    Edit("dot", "sum += a[i] * b[i];", "sum = __builtin_fmaf(a[i], b[i], sum);"),
    Edit("dot", "for (int step = 32", "#pragma unroll\n  for (int step = 32"),
)  # fmt: skip
