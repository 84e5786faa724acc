"""Configuration: which settings exist, where a value came from."""
