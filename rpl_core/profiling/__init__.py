"""Record an application: plan the passes, run them, keep what finished."""
