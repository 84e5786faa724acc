"""rocprofv3: the collector, and readers for what it and its relatives write."""
