"""rocpd databases of rocprofv3 (schema 3): one file per process, or several merged."""
