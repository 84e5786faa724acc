"""PC samples of AMD GPUs: which instruction waves were at, whether they issued it, and why not."""
