"""Guarded unrolling of loops in HIP kernels, and the proposers that choose what to try."""
