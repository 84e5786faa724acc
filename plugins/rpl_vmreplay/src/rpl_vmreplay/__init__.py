"""Captures of one kernel launch with the memory that it needs: reading, checking, comparing them."""
