"""Change kernels only where a measurement proves the gain."""
