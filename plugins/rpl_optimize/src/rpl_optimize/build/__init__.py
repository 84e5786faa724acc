"""Build a candidate source the way that users build their own, in scratch directories only."""
