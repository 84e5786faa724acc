"""CSV sets of rocprofv3: one file per kind of record."""
