"""Readers of recordings: rocpd and RPD databases, CSV sets, JSON, rocprofiler-compute folders.

``catalog`` holds the readers with what they claim; the other modules know the contents, format by format.
"""
