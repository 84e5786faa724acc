"""The commands report, export and explain."""
