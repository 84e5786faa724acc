"""The commands optimize, transform and ledger."""
