"""A comparison as one page for a browser."""
