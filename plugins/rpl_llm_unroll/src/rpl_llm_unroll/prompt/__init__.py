"""What a language model is told about one kernel. Deterministic: equal input gives equal text."""
