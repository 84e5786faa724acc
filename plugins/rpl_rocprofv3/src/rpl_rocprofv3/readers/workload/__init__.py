"""Folders of rocprofiler-compute: tables of counters, one row per dispatch or per reading."""
