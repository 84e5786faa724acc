"""The JSON documents of rpl as pydantic models: the only place where their shape is written down."""
