"""The pydantic models of the four documents and of what-if."""
