"""Statistics of repeated measurements: pure functions over numbers, without traces and without files."""
