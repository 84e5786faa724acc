"""What to try next: by rules (``deterministic``)."""
