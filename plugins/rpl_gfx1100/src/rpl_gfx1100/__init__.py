"""RDNA 3, 3.5 and 4 for rpl: gfx1100, gfx1151 and gfx1201."""
