"""gfx942 as an instruction set: what a compute unit holds, rates of instructions, quirks of recordings."""

from __future__ import annotations

from rpl_amdgpu.architectures import cdna_architecture

__all__ = ["FACTS"]

FACTS = cdna_architecture(
    "gfx942",
    # A quarter of the rates per CU that the ceilings have.
    matrix_rates=(
        ("F64", 64),
        ("F32", 64),
        ("XF32", 256),
        ("F16", 512),
        ("BF16", 512),
        ("I8", 1024),
        ("F8", 1024),
    ),
    source="LLVM AMDGPU back end; ROCm gpu-specs.rst @2b48ffc7",
)
