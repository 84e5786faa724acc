"""The HTML report: one file that needs no network and no script, and is better with its script."""
