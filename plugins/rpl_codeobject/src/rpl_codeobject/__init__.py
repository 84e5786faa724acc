"""What a compiled GPU program says about itself: kernels, arguments, resources, instructions.

Reads code objects (``.hsaco``), clang offload bundles and host executables; compares two of them. Nothing
is loaded, linked or executed; sources: LLVM ``AMDGPUUsage`` (code object metadata V3 and later).
"""
