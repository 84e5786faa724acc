"""Sampling with rocprofv3: what is asked for, what it risks, and how the run ended."""
