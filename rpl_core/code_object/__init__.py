"""What a compiled GPU program says about itself: kernels, arguments, resources, instructions.

Reads code objects (``.hsaco``), clang offload bundles and host executables; compares two of them. Nothing
is loaded, linked or executed; sources: LLVM ``AMDGPUUsage`` (code object metadata V3 and later).
"""

from __future__ import annotations

from rpl_core.code_object.compare import compare_code_objects
from rpl_core.code_object.difference import AbiDiff, Difference, Severity
from rpl_core.code_object.read import read_code_objects
from rpl_core.code_object.values import CodeObject, Kernel, KernelArgument, KernelDescriptor

__all__ = [
    "AbiDiff",
    "CodeObject",
    "Difference",
    "Kernel",
    "KernelArgument",
    "KernelDescriptor",
    "Severity",
    "compare_code_objects",
    "read_code_objects",
]
