"""Writes the source of a kernel for each MFMA and SMFMAC of gfx942: one wave, registers in and out.

Each lane loads its registers of A, B, C (and the index of sparse ones) and stores D, so that the test decides
by itself which element lies where.
"""

from __future__ import annotations

#: 32 rows with two blocks, 16 with four, 4 with sixteen, then one block: size by depths, and the result.
_FIVE = (
    ("32x32x{0}", "f32"),
    ("16x16x{0}", "f16"),
    ("4x4x{0}", "f4"),
    ("32x32x{1}", "f16"),
    ("16x16x{2}", "f4"),
)
_FLOATS = (
    ("f32", "float", (1, 2, 4), "mfma_f32_{}f32"),
    ("f16", "h4", (4, 8, 16), "mfma_f32_{}f16"),
    ("bf16", "s4", (4, 8, 16), "mfma_f32_{}bf16_1k"),
)
_OTHERS = (
    ("mfma_i32_32x32x4i8", "int", "int", "i32", "i8", False),
    ("mfma_i32_16x16x4i8", "int", "int", "i16", "i8", False),
    ("mfma_i32_4x4x4i8", "int", "int", "i4", "i8", False),
    ("mfma_i32_16x16x32_i8", "long", "long", "i4", "i8", False),
    ("mfma_i32_32x32x16_i8", "long", "long", "i16", "i8", False),
    ("mfma_f64_16x16x4f64", "double", "double", "d4", "f64", False),
    ("mfma_f64_4x4x4f64", "double", "double", "double", "f64", False),
    ("mfma_f32_16x16x8_xf32", "f2", "f2", "f4", "xf32", False),
    ("mfma_f32_32x32x4_xf32", "f2", "f2", "f16", "xf32", False),
    ("smfmac_f32_16x16x32_f16", "h4", "h8", "f4", "f16", True),
    ("smfmac_f32_32x32x16_f16", "h4", "h8", "f16", "f16", True),
    ("smfmac_f32_16x16x32_bf16", "s4", "s8", "f4", "bf16", True),
    ("smfmac_f32_32x32x16_bf16", "s4", "s8", "f16", "bf16", True),
    ("smfmac_i32_16x16x64_i8", "i2", "i4", "i4", "i8", True),
    ("smfmac_i32_32x32x32_i8", "i2", "i4", "i16", "i8", True),
)
Shape = tuple[str, str, str, str, str, bool]


def _eight_bit(kinds: str) -> tuple[Shape, ...]:
    return (
        (f"mfma_f32_16x16x32_{kinds}", "long", "long", "f4", kinds, False),
        (f"mfma_f32_32x32x16_{kinds}", "long", "long", "f16", kinds, False),
        (f"smfmac_f32_16x16x64_{kinds}", "i2", "i4", "f4", kinds, True),
        (f"smfmac_f32_32x32x32_{kinds}", "i2", "i4", "f16", kinds, True),
    )


def shapes() -> list[Shape]:
    """Builtin, type of A, of B, of C, kind of the factors, sparse."""
    found: list[Shape] = [
        (name.format(size.format(*depths)), factor, factor, result, kind, False)
        for kind, factor, depths, name in _FLOATS
        for size, result in _FIVE
    ]
    found += _OTHERS
    for first in ("bf8", "fp8"):
        for second in ("bf8", "fp8"):
            found += _eight_bit(f"{first}_{second}")
    return found


def source() -> str:
    lines = [
        "typedef _Float16 half;",
        *(f"typedef float f{n} __attribute__((ext_vector_type({n})));" for n in (2, 4, 16, 32)),
        *(f"typedef int i{n} __attribute__((ext_vector_type({n})));" for n in (2, 4, 16, 32)),
        *(f"typedef half h{n} __attribute__((ext_vector_type({n})));" for n in (4, 8)),
        *(f"typedef short s{n} __attribute__((ext_vector_type({n})));" for n in (4, 8)),
        "typedef double d4 __attribute__((ext_vector_type(4)));",
    ]
    for name, a, b, c, _, sparse in shapes():
        call = "c[t], index[t], 0, 0" if sparse else "c[t], 0, 0, 0"
        lines.append(
            f'extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void {name}'
            f"(const {a}* a, const {b}* b, const {c}* c, const int* index, {c}* d) {{"
            " const int t = __builtin_amdgcn_workitem_id_x();"
            f" d[t] = __builtin_amdgcn_{name}(a[t], b[t], {call}); }}"
        )
    return "\n".join(lines) + "\n"
