"""Tell whether a version got slower, or that nobody can tell: comparison, gate, history."""
