"""From the reduced trace to fractions, attributions and findings; nothing here opens a file."""
