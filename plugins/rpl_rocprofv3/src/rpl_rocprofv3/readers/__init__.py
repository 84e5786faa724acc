"""Readers of recordings: rocpd and RPD databases, CSV sets, JSON, rocprofiler-compute folders.

``catalog.all_readers`` gives them all; the modules are imported only when one is asked for.
"""
