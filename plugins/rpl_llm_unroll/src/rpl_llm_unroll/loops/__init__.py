"""Loops of a kernel: where they are, how they count, how often they run."""
