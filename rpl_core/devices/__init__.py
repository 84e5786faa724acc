"""Which device a recording belongs to, and what the user says about it."""
