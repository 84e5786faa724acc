"""PC samples in the text report, the HTML report and ``rpl explain``."""
