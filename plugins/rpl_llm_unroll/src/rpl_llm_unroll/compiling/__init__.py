"""Compile device code in a scratch directory, for guards that judge the result. Nothing is run."""
