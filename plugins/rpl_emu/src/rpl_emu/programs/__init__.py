"""Whole programs on the emulated GPU."""
