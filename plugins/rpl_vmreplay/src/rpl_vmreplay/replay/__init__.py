"""Running captured launches again: on a GPU by the native replayer, or by what plugins bring."""
