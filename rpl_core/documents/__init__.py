"""Documents of a run, whoever makes them: drafted, checked, written and read back."""
