"""Ceilings for rpl from rocprofiler-compute's benchmark."""
