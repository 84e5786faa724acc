"""Stands where the application of ``rpl demo`` would: it does nothing, the recording is made up."""
