"""Who waits for whom: the order inside lanes, and the edges of every kind between them."""
