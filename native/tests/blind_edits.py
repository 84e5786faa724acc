# ruff: noqa: E501 - edits are whole lines of their kernels
"""A second set of kernels with edits, written by somebody who had not read how inputs are varied.

As in ``varied_edits.py`` each wrong edit leaves on the supplied input what the kernel leaves and has a witness. Every
second edit was held back while the variation of inputs was being repaired.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .varied_edits import Edit, Launch

SOURCES = {
    "gather": """
KERNEL gather(const int* idx, const float* table, float* out, int n, int m, float fill) {
  const int i = I;
  if (i >= n) return;
  const int k = idx[i];
  out[i] = k >= 0 && k < m ? table[k] : fill;
}
""",
    "bins": """
KERNEL bins(const unsigned char* in, unsigned* count, int n, int shift) {
  SHARED unsigned part[64];
  if (T < 64) part[T] = 0;
  SYNC();
  for (int i = I; i < n; i += ALL) {
    const int bin = least(in[i] >> shift, 63);
    ADD(&part[bin], 1u);
  }
  SYNC();
  if (T < 64) ADD(&count[T], part[T]);
}
""",
    "segments": """
KERNEL segments(const int* start, const int* value, unsigned* sum, int count) {
  const int s = I;
  if (s >= count) return;
  unsigned total = 0;
  for (int k = start[s]; k < start[s + 1]; k++) total += value[k];
  sum[s] = total;
}
""",
    "smooth": """
KERNEL smooth(const float* in, float* out, int width, int height, int mode) {
  const int i = I;
  if (i >= width * height) return;
  const int x = i % width, y = i / width;
  float sum = 0.0f;
  for (int d = -1; d <= 1; d++) {
    int at = x + d;
    if (mode == 1) at = least(most(at, 0), width - 1);
    if (mode == 2) at = at < 0 ? at + width : at >= width ? at - width : at;
    sum += at >= 0 && at < width ? in[y * width + at] : 0.0f;
  }
  const float up = y > 0 ? in[i - width] : 0.0f, down = y + 1 < height ? in[i + width] : 0.0f;
  out[i] = mode == 3 ? sum : sum + up + down;
}
""",
    "matvec": """
KERNEL matvec(const float* a, const float* x, float* y, int rows, int cols, int lda, float beta) {
  const int b = B;
  for (int row = T; row < rows; row += D) {
    float sum = 0.0f;
    for (int c = 0; c < cols; c++) sum += a[(b * rows + row) * lda + c] * x[b * cols + c];
    float* place = y + b * rows + row;
    *place = beta == 0.0f ? sum : sum + beta * *place;
  }
}
""",
    "quantise": """
KERNEL quantise(const float* in, signed char* out, int n, float scale, int zero) {
  const int i = I;
  if (i >= n) return;
  float v = __builtin_rintf(in[i] * scale) + float(zero);
  if (!(v >= -128.0f)) v = -128.0f;
  if (v > 127.0f) v = 127.0f;
  out[i] = (signed char)(int)v;
}
""",
    "prefix": """
KERNEL prefix(const int* in, int* out, int n, int exclusive) {
  SHARED unsigned part[256];
  const int i = I;
  const unsigned own = i < n ? in[i] : 0;
  part[T] = own;
  SYNC();
  for (int step = 1; step < D; step *= 2) {
    const unsigned other = T >= step ? part[T - step] : 0;
    SYNC();
    part[T] += other;
    SYNC();
  }
  if (i < n) out[i] = exclusive ? part[T] - own : part[T];
}
""",
    "spmv": """
KERNEL spmv(const int* start, const int* column, const float* value, const float* x, float* y, int rows, float alpha) {
  const int row = I;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int k = start[row]; k < start[row + 1]; k++) sum += value[k] * x[column[k]];
  y[row] = alpha * sum;
}
""",
    "match": """
KERNEL match(const unsigned char* text, const unsigned char* pattern, int* found, int n, int m, int fold) {
  const int i = I;
  if (i > n - m) return;
  bool same = true;
  for (int k = 0; k < m; k++) {
    unsigned char a = text[i + k], b = pattern[k];
    if (fold) {
      if (a >= 'A' && a <= 'Z') a += 32;
      if (b >= 'A' && b <= 'Z') b += 32;
    }
    if (a != b) { same = false; break; }
  }
  found[i] = same;
}
""",
    "turn": """
KERNEL turn(const int* in, int* out, int rows, int cols) {
  SHARED int tile[16 * 17];
  const int tiles = (cols + 15) / 16;
  const int x0 = B % tiles * 16, y0 = B / tiles * 16, tx = T % 16, ty = T / 16;
  if (y0 + ty < rows && x0 + tx < cols) tile[ty * 17 + tx] = in[(y0 + ty) * cols + x0 + tx];
  SYNC();
  if (y0 + tx < rows && x0 + ty < cols) out[(x0 + ty) * rows + y0 + tx] = tile[tx * 17 + ty];
}
""",
    "argmax": """
KERNEL argmax(const float* in, int* where, int cols, int mode) {
  SHARED float value[64];
  SHARED int place[64];
  float best = -__builtin_inff();
  int at = -1;
  for (int c = T; c < cols; c += 64) {
    float v = in[B * cols + c];
    if (mode) v = __builtin_fabsf(v);
    if (v > best) best = v, at = c;
  }
  value[T] = best, place[T] = at;
  SYNC();
  for (int half = 32; half > 0; half /= 2) {
    if (T < half) {
      const float more = value[T + half];
      if (more > value[T] || (more == value[T] && place[T + half] < place[T])) value[T] = more, place[T] = place[T + half];
    }
    SYNC();
  }
  if (T == 0) where[B] = place[0];
}
""",
    "exchange": """
KERNEL exchange(int* data, int n, int j, int k, int descending) {
  const int i = I, other = i ^ j;
  if (other <= i || i >= n || other >= n) return;
  const int a = data[i], b = data[other];
  const bool up = ((i & k) == 0) != (descending != 0);
  if (up ? a > b : a < b) data[i] = b, data[other] = a;
}
""",
    "pack": """
KERNEL pack(const int* in, unsigned long* mask, int n, int threshold) {
  const int i = I;
  const unsigned long word = __builtin_amdgcn_ballot_w64(i < n && in[i] > threshold);
  if (T % 64 == 0 && i < n) mask[i / 64] = word;
}
""",
}


def _whole(seed: int, count: int, low: int, high: int, dtype: Any = np.int32) -> Any:
    return np.random.default_rng(seed).integers(low, high, count).astype(dtype)


def _real(seed: int, count: int, low: float = -1.0, high: float = 1.0) -> Any:
    return np.random.default_rng(seed).uniform(low, high, count).astype(np.float32)


def _starts(seed: int, count: int, longest: int) -> Any:
    lengths = np.random.default_rng(seed).integers(1, longest, count)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def _all(value: Any) -> Any:
    return lambda one: np.full_like(one, value)


def _first(*values: Any) -> Any:
    def place(one: Any) -> Any:
        changed = one.copy()
        changed[: len(values)] = values
        return changed

    return place


def _one_long(one: Any) -> Any:
    return np.where(np.arange(one.size) == 0, 0, 900).astype(one.dtype)


_ZEROS, _WORDS = np.zeros(1024, np.float32), np.zeros(1024, np.int32)
_UNUSED = np.zeros(256, np.float32)
_VALUES = _whole(4, 2048, 1, 100) * np.where(_whole(5, 2048, 0, 2) == 0, -1, 1).astype(np.int32)
_AROUND = _whole(20, 1024, -20, 120)
_AROUND[_AROUND == 50] = 51
_AROUND[_AROUND < 0] = 1

LAUNCHES = {
    "gather": Launch(
        "(int const*, float const*, float*, int, int, float)",
        {"idx": _whole(1, 1024, 0, 500), "table": _real(2, 512), "out": _ZEROS, "n": ("i", 1024), "m": ("i", 512), "fill": ("f", 0.0)},
        4, 256, "out",
    ),
    "bins": Launch(
        "(unsigned char const*, unsigned int*, int, int)",
        {"in": _whole(3, 4096, 0, 252, np.uint8), "count": np.zeros(64, np.uint32), "n": ("i", 4096), "shift": ("i", 2)},
        4, 256, "count",
    ),
    "segments": Launch(
        "(int const*, int const*, unsigned int*, int)",
        {"start": _starts(6, 256, 8), "value": _VALUES, "sum": np.zeros(256, np.uint32), "count": ("i", 256)},
        4, 64, "sum",
    ),
    "smooth": Launch(
        "(float const*, float*, int, int, int)",
        {"in": _real(7, 2048), "out": np.zeros(2048, np.float32), "width": ("i", 64), "height": ("i", 32), "mode": ("i", 1)},
        8, 256, "out",
    ),
    "matvec": Launch(
        "(float const*, float const*, float*, int, int, int, float)",
        {"a": _real(8, 5120), "x": _real(9, 128), "y": np.zeros(400, np.float32), "rows": ("i", 64), "cols": ("i", 16), "lda": ("i", 16), "beta": ("f", 0.0)},
        4, 64, "y",
    ),
    "quantise": Launch(
        "(float const*, signed char*, int, float, int)",
        {"in": _real(10, 1024, -10, 10), "out": np.zeros(1024, np.int8), "n": ("i", 1024), "scale": ("f", 8.0), "zero": ("i", 0)},
        4, 256, "out",
    ),
    "prefix": Launch(
        "(int const*, int*, int, int)",
        {"in": _whole(11, 1024, 0, 10), "out": _WORDS, "n": ("i", 1024), "exclusive": ("i", 0)},
        4, 256, "out",
    ),
    "spmv": Launch(
        "(int const*, int const*, float const*, float const*, float*, int, float)",
        {"start": _starts(12, 256, 9), "column": _whole(13, 2048, 0, 1000), "value": _real(14, 2048), "x": _real(15, 2048), "y": _UNUSED, "rows": ("i", 256), "alpha": ("f", 1.0)},
        4, 64, "y",
    ),
    "match": Launch(
        "(unsigned char const*, unsigned char const*, int*, int, int, int)",
        {"text": _whole(16, 1088, 97, 100, np.uint8), "pattern": np.frombuffer(b"abcaabcabbacabca", np.uint8), "found": _WORDS, "n": ("i", 1024), "m": ("i", 4), "fold": ("i", 0)},
        4, 256, "found",
    ),
    "turn": Launch(
        "(int const*, int*, int, int)",
        {"in": _whole(17, 4096, 0, 30000), "out": np.zeros(4096, np.int32), "rows": ("i", 64), "cols": ("i", 64)},
        16, 256, "out",
    ),
    "argmax": Launch(
        "(float const*, int*, int, int)",
        {"in": _real(18, 2048, 0.1, 9), "where": np.zeros(8, np.int32), "cols": ("i", 100), "mode": ("i", 0)},
        8, 64, "where",
    ),
    "exchange": Launch(
        "(int*, int, int, int, int)",
        {"data": _whole(19, 512, 0, 100000), "n": ("i", 512), "j": ("i", 4), "k": ("i", 8), "descending": ("i", 0)},
        2, 256, "data",
    ),
    "pack": Launch(
        "(int const*, unsigned long*, int, int)",
        {"in": _AROUND, "mask": np.zeros(16, np.uint64), "n": ("i", 1024), "threshold": ("i", 50)},
        4, 256, "mask",
    ),
}  # fmt: skip

_INF, _NAN = float("inf"), float("nan")
_BOUNDS = "__attribute__((amdgpu_flat_work_group_size(64, 256))) "
_CSR = "for (int k = start[row]; k < start[row + 1]; k++) sum += value[k] * x[column[k]];"
_SEGMENT = "for (int k = start[s]; k < start[s + 1]; k++) total += value[k];"
_DOT = "for (int c = 0; c < cols; c++) sum += a[(b * rows + row) * lda + c] * x[b * cols + c];"
_STEPS = """  for (int step = 1; step < D; step *= 2) {
    const unsigned other = T >= step ? part[T - step] : 0;
    SYNC();
    part[T] += other;
    SYNC();
  }
"""

WRONG = [
    Edit("gather", "k >= 0 && k < m", "k < m", {"idx": _first(-1, -5, -4000)}),
    Edit("gather", "k < m", "k <= m", {"m": 300, "idx": _all(300)}),
    Edit("gather", "  if (i >= n) return;\n", "", {"n": 1000}),
    Edit("gather", "k = idx[i]", "k = (unsigned short)idx[i]", {"idx": _first(65536 + 3, 131072)}),
    Edit("gather", ": fill", ": 0.0f", {"fill": 1.5, "idx": _all(600)}),
    Edit("gather", "k = idx[i]", "k = least(idx[i], m - 1)", {"idx": _all(600)}),
    Edit("bins", "least(in[i] >> shift, 63)", "in[i] >> shift", {"shift": 0}),
    Edit("bins", "least(in[i] >> shift, 63)", "(in[i] >> shift) & 63", {"shift": 1}),
    Edit("bins", "i < n;", "i < (n & ~3);", {"n": 4095}),
    Edit("bins", "ADD(&count[T], part[T])", "ADD(&count[T], unsigned((unsigned char)part[T]))", {"in": _all(8)}),
    Edit("bins", "if (T < 64) ADD", "if (T < 63) ADD", {"in": _all(255)}),
    Edit("segments", _SEGMENT, "int k = start[s];\n  do total += value[k]; while (++k < start[s + 1]);", {"start": _all(3)}),
    Edit("segments", "unsigned total", "short total", {"value": _all(30000)}),
    Edit("segments", "s >= count", "s > count", {"count": 255}),
    Edit("segments", "k < start[s + 1]; k++", "k < least(start[s + 1], start[s] + 8); k++", {"start": _one_long}),
    Edit("segments", "total += value[k];", "{ if (value[k] == 0) break; total += value[k]; }", {"value": _first(0, 7, 0, 7, 0, 7)}),
    Edit("smooth", "i % width", "(i & (width - 1))", {"width": 48, "height": 40}),
    Edit("smooth", "at < 0 ? at + width", "at < 0 ? 0", {"mode": 2}),
    Edit("smooth", "  if (i >= width * height) return;\n", "", {"height": 31}),
    Edit("smooth", "mode == 3 ? sum : sum + up + down", "sum + up + down", {"mode": 3}),
    Edit("smooth", "if (mode == 1)", "if (mode >= 1)", {"mode": 2}),
    Edit("smooth", "y + 1 < height", "i + width < 2048", {"height": 16}),
    Edit("matvec", "* lda + c", "* cols + c", {"lda": 18}),
    Edit("matvec", _DOT, "for (int c = 0; c + 3 < cols; c += 4)\n      for (int d = c; d < c + 4; d++) sum += a[(b * rows + row) * lda + d] * x[b * cols + d];", {"cols": 15}),
    Edit("matvec", "beta == 0.0f ? sum : sum + beta * *place", "sum", {"beta": 0.5, "y": _all(3.0)}),
    Edit("matvec", "beta == 0.0f ? sum : sum + beta * *place", "sum + beta * *place", {"y": _all(_NAN)}),
    Edit("matvec", "for (int row = T; row < rows; row += D) {", "if (const int row = T; row < rows) {", {"rows": 80}),
    Edit("matvec", "c++) sum +=", "c++) if (x[b * cols + c] != 0.0f) sum +=", {"x": _all(0.0), "a": _all(_INF)}),
    Edit("quantise", "  if (v > 127.0f) v = 127.0f;\n", "", {"in": _all(100.0)}),
    Edit("quantise", "__builtin_rintf(in[i] * scale)", "__builtin_floorf(in[i] * scale + 0.5f)", {"in": _all(0.0625)}),
    Edit("quantise", "!(v >= -128.0f)", "v < -128.0f", {"in": _all(_NAN)}),
    Edit("quantise", " + float(zero)", "", {"zero": 3}),
    Edit("quantise", "in[i] * scale", "in[i] * 8.0f", {"scale": 4.0}),
    Edit("quantise", "__builtin_rintf", "__builtin_roundf", {"in": _all(0.0625)}),
    Edit("prefix", "exclusive ? part[T] - own : part[T]", "part[T]", {"exclusive": 1}),
    Edit("prefix", "exclusive ? part[T] - own", "exclusive && T > 0 ? part[T - 1]", {"exclusive": 1, "in": _all(3)}),
    Edit("prefix", "if (i < n) out[i]", "out[i]", {"n": 1000}),
    Edit("prefix", "SHARED unsigned part", "SHARED unsigned short part", {"in": _all(1000)}),
    Edit("prefix", "i < n ? in[i]", "i < n ? (unsigned char)in[i]", {"in": _all(-2)}),
    Edit("prefix", "exclusive ?", "exclusive == 1 ?", {"exclusive": 2}),
    Edit("spmv", "alpha * sum", "sum", {"alpha": 2.0}),
    Edit("spmv", "y[row] = alpha", "if (start[row] < start[row + 1]) y[row] = alpha", {"start": _all(2), "y": _all(5.0)}),
    Edit("spmv", "row >= rows", "row >= 256", {"rows": 200}),
    Edit("spmv", "x[column[k]]", "x[column[k] & 1023]", {"column": _all(1500)}),
    Edit("spmv", "sum += value[k]", "if (value[k] != 0.0f) sum += value[k]", {"value": _all(0.0), "x": _all(_INF)}),
    Edit("spmv", "k < start[row + 1]", "k < start[row] + least(8, start[row + 1] - start[row])", {"start": _one_long}),
    Edit("match", "k < m; k++", "k < least(m, 4); k++", {"m": 5, "text": _all(97), "pattern": _first(97, 97, 97, 97, 98)}),
    Edit("match", "if (fold)", "if (fold == 1)", {"fold": 2, "text": _all(65), "pattern": _all(97)}),
    Edit("match", "if (a >= 'A' && a <= 'Z') a += 32;", "a |= 32;", {"fold": 1, "text": _all(64), "pattern": _all(96)}),
    Edit("match", "i > n - m", "i >= n - m", {"text": _all(97), "pattern": _all(97)}),
    Edit("match", "found[i] = same", "if (same) found[i] = 1", {"found": _all(7)}),
    Edit("match", "i > n - m", "i >= n", {"found": _all(7)}),
    Edit("turn", "(cols + 15) / 16", "cols / 16", {"rows": 40, "cols": 40}),
    Edit("turn", "* rows + y0", "* cols + y0", {"rows": 32}),
    Edit("turn", "if (y0 + tx < rows && x0 + ty < cols) out", "out", {"rows": 40, "cols": 40}),
    Edit("turn", "y0 + tx < rows && x0 + ty < cols", "y0 + tx < cols && x0 + ty < rows", {"rows": 32}),
    Edit("turn", "in[(y0 + ty) * cols", "in[(y0 + ty) * 64", {"cols": 32}),
    Edit("turn", "SHARED int tile", "SHARED short tile", {"in": _all(1000000)}),
    Edit("argmax", "-__builtin_inff()", "0.0f", {"in": _all(-1.0)}),
    Edit("argmax", "-__builtin_inff()", "-1e30f", {"in": _all(-1e35)}),
    Edit("argmax", "more > value[T] || (more == value[T] && place[T + half] < place[T])", "more > value[T]", {"cols": 128, "in": _first(*[1.0] * 33, 9.0, *[1.0] * 30, 9.0, *[1.0] * 63)}),
    Edit("argmax", "    if (mode) v = __builtin_fabsf(v);\n", "", {"mode": 1, "in": _first(-50.0)}),
    Edit("argmax", "if (v > best)", "if (!(v <= best))", {"in": _first(*[1.0] * 64, _NAN)}),
    Edit("argmax", "c < cols;", "c < least(cols, 128);", {"cols": 200, "in": lambda one: np.arange(one.size, dtype=np.float32)}),
    Edit("argmax", "if (v > best)", "if (v >= best)", {"in": _all(1.0)}),
    Edit("exchange", " || other >= n", "", {"n": 509, "data": lambda one: np.arange(one.size)}),
    Edit("exchange", "a > b : a < b", "unsigned(a) > unsigned(b) : unsigned(a) < unsigned(b)", {"data": lambda one: one - 50000}),
    Edit("exchange", "a > b : a < b", "int(unsigned(a) - unsigned(b)) > 0 : int(unsigned(a) - unsigned(b)) < 0", {"data": lambda one: np.where(np.arange(one.size) % 8 < 4, -2000000000, 2000000000)}),
    Edit("exchange", " != (descending != 0)", "", {"descending": 1}),
    Edit("exchange", "descending != 0", "descending == 1", {"descending": 2}),
    Edit("exchange", "i ^ j", "i | j", {"j": 6}),
    Edit("exchange", "(i & k) == 0", "i / k % 2 == 0", {"k": 12, "j": 1}),
    Edit("pack", "i < n && in[i] > threshold", "in[i] > threshold", {"n": 1000, "in": _all(99)}),
    Edit("pack", "in[i] > threshold", "in[i] >= threshold", {"in": _all(50)}),
    Edit("pack", "in[i] > threshold", "unsigned(in[i]) > unsigned(threshold)", {"in": _all(-3)}),
    Edit("pack", "T % 64 == 0 && i < n", "T % 64 == 0", {"n": 900, "mask": _all(7)}),
    Edit("pack", "in[i] > threshold", "in[i] > 50", {"threshold": 10}),
]  # fmt: skip

RIGHT = [
    Edit(
        "gather",
        "out[i] = k >= 0 && k < m ? table[k] : fill;",
        "float v = fill;\n  if (k >= 0 && k < m) v = table[k];\n  out[i] = v;",
    ),
    Edit("gather", "if (i >= n) return;", "if (!(i < n)) return;"),
    Edit("gather", "KERNEL", _BOUNDS + "KERNEL"),
    Edit("gather", "? table[k]", "? __builtin_nontemporal_load(table + k)"),
    Edit("gather", "k >= 0 && k < m", "m > 0 && unsigned(k) < unsigned(m)"),
    Edit("bins", "if (T < 64) ADD", "if (T < 64 && part[T] != 0) ADD"),
    Edit("bins", "part[64];", "part[64 + 1];"),
    Edit("bins", "  for (int i", "#pragma unroll 4\n  for (int i"),
    Edit("bins", "bin = least(in[i] >> shift, 63)", "raw = in[i] >> shift, bin = raw < 63 ? raw : 63"),
    Edit("bins", "if (T < 64) part[T] = 0;", "for (int b = T; b < 64; b += D) part[b] = 0;"),
    Edit(
        "bins",
        "ADD(&part[bin], 1u)",
        "__hip_atomic_fetch_add(&part[bin], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP)",
    ),
    Edit(
        "segments",
        _SEGMENT,
        "const int end = start[s + 1];\n  for (int k = start[s]; k < end; k++) total += value[k];",
    ),
    Edit(
        "segments",
        _SEGMENT,
        "int k = start[s];\n  const int end = start[s + 1];\n  for (; k < end - 3; k += 4) total += value[k] + unsigned(value[k + 1]) + value[k + 2] + value[k + 3];\n  for (; k < end; k++) total += value[k];",
    ),
    Edit("segments", "  for (int k", "#pragma unroll 8\n  for (int k"),
    Edit("segments", _SEGMENT, "for (int k = start[s + 1]; k > start[s];) total += value[--k];"),
    Edit(
        "segments",
        "unsigned total = 0;",
        "if (start[s] >= start[s + 1]) { sum[s] = 0; return; }\n  unsigned total = 0;",
    ),
    Edit("smooth", "x = i % width, y = i / width;", "y = i / width, x = i - y * width;"),
    Edit("smooth", "  for (int d", "#pragma unroll\n  for (int d"),
    Edit("smooth", "    if (mode == 2)", "    else if (mode == 2)"),
    Edit(
        "smooth",
        "out[i] = mode == 3 ? sum : sum + up + down;",
        "if (mode != 3) sum = sum + up + down;\n  out[i] = sum;",
    ),
    Edit("smooth", "in[y * width + at]", "in[i + at - x]"),
    Edit("smooth", "KERNEL", _BOUNDS + "KERNEL"),
    Edit(
        "matvec",
        _DOT,
        "const float* line = a + (b * rows + row) * lda;\n    const float* with = x + b * cols;\n    for (int c = 0; c < cols; c++) sum += line[c] * with[c];",
    ),
    Edit("matvec", "    for (int c", "#pragma unroll 4\n    for (int c"),
    Edit("matvec", "float* y,", "float* __restrict__ y,"),
    Edit(
        "matvec",
        _DOT,
        "int c = 0;\n    const int from = (b * rows + row) * lda, with = b * cols;\n    for (; c < cols - 1; c += 2) {\n      sum += a[from + c] * x[with + c];\n      sum += a[from + c + 1] * x[with + c + 1];\n    }\n    if (c < cols) sum += a[from + c] * x[with + c];",
    ),
    Edit("matvec", "const int b = B;", "const int b = B;\n  if (T >= rows) return;"),
    Edit(
        "quantise",
        "  if (!(v >= -128.0f)) v = -128.0f;\n  if (v > 127.0f) v = 127.0f;\n",
        "  v = __builtin_fminf(__builtin_fmaxf(v, -128.0f), 127.0f);\n",
    ),
    Edit("quantise", "if (v > 127.0f) v = 127.0f;", "v = v > 127.0f ? 127.0f : v;"),
    Edit(
        "quantise",
        "out[i] = (signed char)(int)v;",
        "__builtin_nontemporal_store((signed char)(int)v, out + i);",
    ),
    Edit("quantise", "!(v >= -128.0f)", "v != v || v < -128.0f"),
    Edit("quantise", "KERNEL", _BOUNDS + "KERNEL"),
    Edit("prefix", "SHARED unsigned part[256];", "SHARED unsigned part[256 + 8];"),
    Edit("prefix", "step *= 2", "step <<= 1"),
    Edit("prefix", "part[T] += other;", "if (T >= step) part[T] += other;"),
    Edit("prefix", "  for (int step", "#pragma unroll\n  for (int step"),
    Edit("prefix", "exclusive ? part[T] - own : part[T]", "part[T] - (exclusive ? own : 0u)"),
    Edit(
        "prefix",
        _STEPS,
        "  SHARED unsigned next[256];\n  unsigned *from = part, *to = next;\n  for (int step = 1; step < D; step *= 2) {\n    to[T] = from[T] + (T >= step ? from[T - step] : 0);\n    SYNC();\n    unsigned* kept = from;\n    from = to, to = kept;\n  }\n  part[T] = from[T];\n",
    ),
    Edit(
        "spmv",
        _CSR,
        "const int end = start[row + 1];\n  for (int k = start[row]; k < end; k++) sum += value[k] * x[column[k]];",
    ),
    Edit("spmv", "  for (int k", "#pragma unroll 2\n  for (int k"),
    Edit("spmv", "alpha * sum", "sum * alpha"),
    Edit("spmv", "float* y,", "float* __restrict__ y,"),
    Edit(
        "spmv",
        _CSR,
        "int k = start[row], end = start[row + 1];\n  while (k < end) {\n    const float with = x[column[k]];\n    sum += with * value[k++];\n  }",
    ),
    Edit("match", "if (a != b) { same = false; break; }", "same = same && a == b;\n    if (!same) break;"),
    Edit("match", "k < m; k++) {", "k < m && same; k++) {"),
    Edit("match", "if (a >= 'A' && a <= 'Z') a += 32;", "if (unsigned(a - 'A') < 26u) a |= 32;"),
    Edit("match", "  for (int k", "#pragma unroll 4\n  for (int k"),
    Edit("match", "  found[i] = same;", "  if (same) found[i] = 1;\n  else found[i] = 0;"),
    Edit("turn", "tx = T % 16, ty = T / 16", "tx = T & 15, ty = T >> 4"),
    Edit("turn", "SHARED int tile[16 * 17];", "SHARED int tile[16 * 17 + 4];"),
    Edit(
        "turn",
        "tile[ty * 17 + tx] = in[(y0 + ty) * cols + x0 + tx];\n  SYNC();\n  if (y0 + tx < rows && x0 + ty < cols) out[(x0 + ty) * rows + y0 + tx] = tile[tx * 17 + ty];",
        "tile[tx * 16 + ty] = in[(y0 + ty) * cols + x0 + tx];\n  SYNC();\n  if (y0 + tx < rows && x0 + ty < cols) out[(x0 + ty) * rows + y0 + tx] = tile[ty * 16 + tx];",
    ),
    Edit(
        "turn",
        "x0 = B % tiles * 16, y0 = B / tiles * 16,",
        "by = B / tiles, x0 = (B - by * tiles) * 16, y0 = by * 16,",
    ),
    Edit("turn", "KERNEL", _BOUNDS + "KERNEL"),
    Edit("argmax", "half /= 2", "half >>= 1"),
    Edit("argmax", "  for (int c", "#pragma unroll 2\n  for (int c"),
    Edit(
        "argmax",
        "float v = in[B * cols + c];\n    if (mode) v = __builtin_fabsf(v);",
        "const float raw = in[B * cols + c], v = mode ? __builtin_fabsf(raw) : raw;",
    ),
    Edit("argmax", "  for (int half", "#pragma unroll\n  for (int half"),
    Edit("argmax", "    SYNC();\n  }\n  if (T == 0)", "    if (half > 1) SYNC();\n  }\n  if (T == 0)"),
    Edit(
        "argmax",
        "float best = -__builtin_inff();",
        "if (cols <= 0) {\n    if (T == 0) where[B] = -1;\n    return;\n  }\n  float best = -__builtin_inff();",
    ),
    Edit("exchange", "other <= i || i >= n || other >= n", "i >= n || other >= n || i >= other"),
    Edit(
        "exchange",
        "if (up ? a > b : a < b) data[i] = b, data[other] = a;",
        "data[i] = up ? least(a, b) : most(a, b), data[other] = up ? most(a, b) : least(a, b);",
    ),
    Edit("exchange", "up ? a > b : a < b", "(up && a > b) || (!up && b > a)"),
    Edit("exchange", "other <= i || i >= n || other >= n", "other <= i || other >= n"),
    Edit(
        "exchange",
        "const bool up = ((i & k) == 0) != (descending != 0);",
        "const bool up = descending ? (i & k) != 0 : (i & k) == 0;",
    ),
    Edit("pack", "mask[i / 64]", "mask[i >> 6]"),
    Edit("pack", "T % 64 == 0 && i < n", "i < n && (T & 63) == 0"),
    Edit("pack", "in[i] > threshold", "!(in[i] <= threshold)"),
    Edit(
        "pack",
        "const unsigned long word = __builtin_amdgcn_ballot_w64(i < n && in[i] > threshold);",
        "bool set = false;\n  if (i < n) set = in[i] > threshold;\n  const unsigned long word = __builtin_amdgcn_ballot_w64(set);",
    ),
    Edit("pack", "KERNEL", _BOUNDS + "KERNEL"),
]

#: Every second edit.
SHOWN = [*WRONG[::2], *RIGHT[::2]]
HELD_BACK = [*WRONG[1::2], *RIGHT[1::2]]
