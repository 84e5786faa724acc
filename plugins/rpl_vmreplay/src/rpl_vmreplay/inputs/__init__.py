"""Inputs of a captured launch that nobody supplied: chosen from its arguments, its memory and the code."""
