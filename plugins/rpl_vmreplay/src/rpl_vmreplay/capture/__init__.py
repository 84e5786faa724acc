"""A capture folder: its files, what they must agree on, and how two captures differ."""
