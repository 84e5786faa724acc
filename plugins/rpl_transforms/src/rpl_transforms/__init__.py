"""Source changes of HIP kernels beside unrolling, each proposed only where facts speak for it."""
