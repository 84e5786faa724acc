"""The commands ``rpl prompt`` and ``rpl llm-optimize``."""
