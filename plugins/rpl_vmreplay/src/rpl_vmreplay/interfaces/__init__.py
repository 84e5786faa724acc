"""What plugins implement: replayers, which run captured launches again."""
