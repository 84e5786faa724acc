"""From the JSON of Kineto to a trace."""
