"""Device-independent analyses: one folder per step, values in, values out."""
