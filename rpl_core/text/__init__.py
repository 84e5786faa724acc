"""Plain text for people: safe, aligned, of bounded width."""
