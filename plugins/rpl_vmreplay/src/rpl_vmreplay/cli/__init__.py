"""The command capture."""
