"""The two ways to write an unrolled loop. Each makes exactly one edit."""
