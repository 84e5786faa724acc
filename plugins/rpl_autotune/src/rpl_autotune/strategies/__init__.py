"""Strategies: the built-in one and a wrapper of Optuna."""
