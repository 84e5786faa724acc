"""A search space: from its file to a list of configurations with features."""
