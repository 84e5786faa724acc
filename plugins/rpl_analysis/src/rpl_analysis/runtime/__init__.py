"""Runtime from dispatch timestamps, its stability over runs, and the resources of each kernel."""
