"""The command compare."""
