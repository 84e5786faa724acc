"""gfx90a (MI210, MI250X) for rpl."""
