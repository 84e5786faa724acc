"""Results JSON of rocprofv3: one file per process."""
