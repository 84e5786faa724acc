"""Checks of rpl on the machine that it runs on: each confirmed, refuted or not possible."""
