"""`rpl autotune`."""
