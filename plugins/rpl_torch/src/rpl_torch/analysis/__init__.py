"""From a trace of torch.profiler to times, work and waits of its operators."""
