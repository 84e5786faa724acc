"""What a plugin can contribute to the optimizer, one file per kind (``rpl_optimize.hookspecs``)."""
