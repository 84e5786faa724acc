"""Which analyzers run, in which order, and what becomes of one that fails."""
