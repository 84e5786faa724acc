"""What a graph is made of: work nodes, the lanes they run in, edges, and dense numbers for keys."""
