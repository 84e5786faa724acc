"""Which file of a command holds the kernels, and how a built one takes its place when the command runs."""
