"""Names and tables that fit a terminal, for everybody who shows kernels."""
