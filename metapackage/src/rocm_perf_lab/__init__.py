"""All of ROCm Perf Lab: the demo, and which distribution brings what."""
