"""Instruction heat: how often each instruction and source line ran, with how many lanes."""
