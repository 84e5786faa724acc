"""What a compiled GPU program says about itself: kernels, arguments, resources, instructions.

Reads code objects (``.hsaco``), clang offload bundles and host executables; compares two of them. Nothing
is loaded, linked or executed; sources: LLVM ``AMDGPUUsage`` (code object metadata V3 and later).
"""

from __future__ import annotations

from rpl_codeobject.compare import compare_code_objects
from rpl_codeobject.difference import AbiDiff, Difference, Severity
from rpl_codeobject.read import read_code_objects
from rpl_codeobject.values import CodeObject, Kernel, KernelArgument, KernelDescriptor

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
