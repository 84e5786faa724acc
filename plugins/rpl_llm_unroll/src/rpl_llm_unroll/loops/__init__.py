"""Loops of a source file: where they are, what is known of them by name, and which of them are unrolled."""
