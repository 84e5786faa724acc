"""Counters that CDNA GPUs share: bytes, FLOPs, ratios, and how many fit into a pass."""
