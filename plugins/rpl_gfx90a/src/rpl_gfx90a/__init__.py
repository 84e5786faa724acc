"""gfx90a: MI210, MI250 and MI250X for rpl."""
