"""What is read off a solved graph: path, slack, forecasts, idle time, sums per symbol, all columns."""
