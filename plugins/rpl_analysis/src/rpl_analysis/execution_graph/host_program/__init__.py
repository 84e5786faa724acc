"""What the host did: calls by meaning, who submitted what, which device and stream were meant."""
