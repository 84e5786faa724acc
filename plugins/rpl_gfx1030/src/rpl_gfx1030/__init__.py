"""RDNA 2 for rpl: gfx1030, gfx1031 and gfx1032."""
