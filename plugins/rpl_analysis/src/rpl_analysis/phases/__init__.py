"""Ranges that the application marked, and the GPU work that they launched."""
