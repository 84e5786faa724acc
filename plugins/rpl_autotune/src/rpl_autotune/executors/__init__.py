"""Executors: processes of this machine, a Dask cluster, and recorded spaces."""
