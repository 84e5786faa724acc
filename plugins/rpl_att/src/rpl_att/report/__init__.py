"""Thread traces in the text report, the HTML report and ``rpl explain``."""
