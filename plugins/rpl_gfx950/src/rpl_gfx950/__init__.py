"""gfx950: MI350X, MI355X and MI350P for rpl."""
