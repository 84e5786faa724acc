"""Measure candidates: pairs and rule, gains and their prediction, memory traffic."""
