"""The run directory: what `rpl profile` leaves behind and every later command reads."""
