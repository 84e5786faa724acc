"""Counter values per kernel, the quantities a device derives from them, and the passes to collect them."""
