"""Writes the source of a kernel for each MFMA and SMFMAC of gfx942: one wave, registers in and out.

Each lane loads its registers of A, B, C (and the index of sparse ones) and stores D, so that the test decides
by itself which element lies where.
"""

from __future__ import annotations

#: Opcode's name after ``v_``: builtin, words of a lane in A, B, C, whether sparse, type of the result.
_VECTOR = {"f": "float", "i": "int", "d": "double"}


def _operand(kind: str, words: int) -> str:
    """The type that the builtin takes for registers of ``words`` words."""
    if kind == "f32":
        return "float"
    if kind == "f64":
        return "double"
    if kind in ("i8", "f8"):
        return {1: "int", 2: "long", 4: "i4"}[words] if kind == "f8" or words != 2 else "long"
    if kind == "xf32":
        return "f2"
    letter = {"f16": "h", "bf16": "s"}[kind]
    return f"{letter}{words * 2}"


def shapes() -> list[tuple[str, str, str, str, str, int]]:
    """Builtin, type of A, of B, of C, kind of the factors, sparse."""
    found = []
    for size, c in (("32x32x1", "f32"), ("16x16x1", "f16"), ("4x4x1", "f4"), ("32x32x2", "f16"), ("16x16x4", "f4")):
        found.append((f"mfma_f32_{size}f32", "float", "float", c, "f32", 0))
    for kind, letter, suffix in (("f16", "h4", "f16"), ("bf16", "s4", "bf16_1k")):
        for size, c in (("32x32x4", "f32"), ("16x16x4", "f16"), ("4x4x4", "f4"), ("32x32x8", "f16"), ("16x16x16", "f4")):
            found.append((f"mfma_f32_{size}{suffix}", letter, letter, c, kind, 0))
    for size, c in (("32x32x4", "i32"), ("16x16x4", "i16"), ("4x4x4", "i4")):
        found.append((f"mfma_i32_{size}i8", "int", "int", c, "i8", 0))
    for size, c in (("16x16x32_i8", "i4"), ("32x32x16_i8", "i16")):
        found.append((f"mfma_i32_{size}", "long", "long", c, "i8", 0))
    found.append(("mfma_f64_16x16x4f64", "double", "double", "d4", "f64", 0))
    found.append(("mfma_f64_4x4x4f64", "double", "double", "double", "f64", 0))
    for size, c in (("16x16x8_xf32", "f4"), ("32x32x4_xf32", "f16")):
        found.append((f"mfma_f32_{size}", "f2", "f2", c, "xf32", 0))
    for one in ("bf8", "fp8"):
        for two in ("bf8", "fp8"):
            for size, c in (("16x16x32", "f4"), ("32x32x16", "f16")):
                found.append((f"mfma_f32_{size}_{one}_{two}", "long", "long", c, f"{one}_{two}", 0))
            for size, c in (("16x16x64", "f4"), ("32x32x32", "f16")):
                found.append((f"smfmac_f32_{size}_{one}_{two}", "i2", "i4", c, f"{one}_{two}", 1))
    for kind, a, b in (("f16", "h4", "h8"), ("bf16", "s4", "s8")):
        for size, c in (("16x16x32", "f4"), ("32x32x16", "f16")):
            found.append((f"smfmac_f32_{size}_{kind}", a, b, c, kind, 1))
    for size, c in (("16x16x64", "i4"), ("32x32x32", "i16")):
        found.append((f"smfmac_i32_{size}_i8", "i2", "i4", c, "i8", 1))
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
        call = f"c[t], index[t], 0, 0" if sparse else "c[t], 0, 0, 0"
        lines.append(
            f'extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void {name}'
            f"(const {a}* a, const {b}* b, const {c}* c, const int* index, {c}* d) {{"
            f" const int t = __builtin_amdgcn_workitem_id_x();"
            f" d[t] = __builtin_amdgcn_{name}(a[t], b[t], {call}); }}"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(source())
