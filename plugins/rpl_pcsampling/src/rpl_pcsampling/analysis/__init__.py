"""From samples to counts per instruction, line and kernel, each with its interval."""
