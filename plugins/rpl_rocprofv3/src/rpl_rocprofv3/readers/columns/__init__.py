"""Columns of numbers and texts, as every format needs them."""
