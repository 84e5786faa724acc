"""Recordings in the formats of other viewers and tools."""
