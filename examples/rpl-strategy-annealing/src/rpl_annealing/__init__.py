"""Simulated annealing as a strategy of rpl autotune."""
