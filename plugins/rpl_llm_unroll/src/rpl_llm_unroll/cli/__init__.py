"""The commands llm-optimize and prompt."""
