"""The ledger: every step and decision of an optimization in one append-only file of chained hashes."""
