"""The execution graph of a recorded run: nodes and chains from a trace, results in the terms of the user."""
