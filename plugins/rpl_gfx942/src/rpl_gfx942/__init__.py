"""gfx942: MI300X, MI300A, MI325X and MI308X for rpl."""
