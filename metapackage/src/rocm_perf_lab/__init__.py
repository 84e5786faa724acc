"""All of ROCm Perf Lab: and which distribution brings what."""
