"""One bottleneck label per kernel, by rules that are data, with evidence and near-misses."""
