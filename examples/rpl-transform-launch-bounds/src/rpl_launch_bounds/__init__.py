"""An rpl plugin that proposes ``__launch_bounds__(N)`` for HIP kernels."""
