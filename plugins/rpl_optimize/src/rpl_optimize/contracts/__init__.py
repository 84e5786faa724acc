"""The pydantic models of optimize.json and of the ledger."""
