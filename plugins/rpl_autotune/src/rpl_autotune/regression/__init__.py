"""The regression model of the built-in strategy, and how much it can be trusted."""
