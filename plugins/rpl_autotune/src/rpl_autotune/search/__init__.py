"""One search from its request to `autotune.json`."""
