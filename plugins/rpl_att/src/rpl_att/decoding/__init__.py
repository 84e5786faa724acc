"""Raw traces, decoded by the user's own decoder library in a process of its own."""
