"""Build a candidate source the way the user builds his own, in scratch directories only."""
