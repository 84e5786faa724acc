"""The command what-if."""
