"""What the application would gain if chosen kernels were faster, one by one and all at once."""
