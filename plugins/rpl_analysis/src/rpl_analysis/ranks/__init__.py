"""GPUs and ranks beside each other: time of each, imbalance per kernel, collectives and who waits in them."""
