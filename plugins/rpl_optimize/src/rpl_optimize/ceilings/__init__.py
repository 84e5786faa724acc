"""Ceilings of the user's own device: small kernels of known work, their rates, and where these are kept."""
