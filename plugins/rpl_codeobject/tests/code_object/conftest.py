"""Compile small kernels for gfx942 without ROCm, and build code object values by hand."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rpl_codeobject.kernel_code import CodeObject, Kernel

_PRELUDE = """
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define LANE __builtin_amdgcn_workitem_id_x()
"""
_DEFAULTS = {
    "name": "kernel",
    "symbol": "kernel.kd",
    "arguments": (),
    "kernarg_bytes": 16,
    "kernarg_align": 8,
    "lds_bytes": 0,
    "scratch_bytes": 0,
    "max_workgroup_size": 256,
    "wavefront_size": 64,
    "required_workgroup": None,
    "dynamic_stack": False,
    "vgprs": 32,
    "agprs": 0,
    "sgprs": 16,
    "vgpr_spills": 0,
    "sgpr_spills": 0,
    "workgroup_processor_mode": None,
    "uniform_workgroups": 1,
    "descriptor": None,
}


@pytest.fixture
def compile_hip(rpl_require: Callable[[str], Path], tmp_path: Path) -> Callable[..., Path]:
    """``compile_hip("source", "--flag", name="a.hsaco")``: the path of what clang wrote."""
    rpl_require("ld.lld-22")
    compiler = rpl_require("clang++-22")

    def build(text: str, *flags: str, name: str = "kernel.hsaco", bundle: bool = False) -> Path:
        source, output = tmp_path / f"{name}.hip", tmp_path / name
        source.write_text(_PRELUDE + text)
        standard = ["-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-O3"]
        standard += [] if bundle else ["--no-gpu-bundle-output"]
        target = [] if any("offload-arch" in flag for flag in flags) else ["--offload-arch=gfx942"]
        command = [compiler, *standard, *target, *flags, source, "-o", output]
        subprocess.run(command, check=True, capture_output=True)
        return output

    return build


@pytest.fixture
def make_kernel() -> Callable[..., Kernel]:
    """``make_kernel(vgprs=65)``: a small kernel of which only the given facts differ."""

    def build(**facts: Any) -> Kernel:
        return Kernel(**{**_DEFAULTS, **facts})

    return build


@pytest.fixture
def make_code_object() -> Callable[..., CodeObject]:
    def build(*kernels: Kernel, target: str = "amdgcn-amd-amdhsa--gfx942") -> CodeObject:
        return CodeObject(target=target, metadata_version=(1, 2), kernels=kernels, elf=b"")

    return build
