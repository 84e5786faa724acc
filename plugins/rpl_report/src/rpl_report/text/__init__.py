"""The text report, one file per section."""
