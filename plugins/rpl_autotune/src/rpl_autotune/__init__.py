"""Search launch and tile parameters by measurement, with a model that knows when it does not know."""
