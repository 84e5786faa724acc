"""PC samples in the files of rocprofv3: CSV tables and results JSON."""
