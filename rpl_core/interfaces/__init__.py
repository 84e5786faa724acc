"""What a plugin can contribute, one file per kind. The hooks in ``rpl_core.hookspecs`` return these."""
