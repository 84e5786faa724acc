"""What the code of a kernel tells about its counters: the share of packed arithmetic."""
