"""The files that rocprofv3 leaves, by format."""
