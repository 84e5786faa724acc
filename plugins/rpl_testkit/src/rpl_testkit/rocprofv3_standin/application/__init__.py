"""The application that runs, and what the GPU is supposed to have done meanwhile."""
