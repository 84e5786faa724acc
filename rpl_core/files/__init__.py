"""Files: written so that a crash, a full disk or Ctrl-C never leaves half of one, and hashed."""
