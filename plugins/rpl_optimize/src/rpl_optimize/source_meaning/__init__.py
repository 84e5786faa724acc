"""What an edit means, by the user's own compiler: general invariants that judge every candidate."""
