"""What to do next about each label and about time that no kernel takes, by rules that are data."""
