"""The JSON documents of rpl as pydantic models: the only place where their shape is written down."""

#: Major version that this rpl reads and the version it writes.
SCHEMA_MAJOR = "1"
SCHEMA_VERSION = "1.0"
