"""gfx942 kernels on the CPU."""
