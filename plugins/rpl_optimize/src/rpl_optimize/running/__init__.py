"""How a candidate's program runs: in a sandbox, with a built file in the place of the command's own."""
