"""torch.profiler traces for rpl: reading them, and what they say per operator, module, line and shape."""
