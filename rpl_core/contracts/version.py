"""The version of the documents' schemas, for those who need nothing else of the contracts."""

from __future__ import annotations

#: Major version that this rpl reads and the version it writes.
SCHEMA_MAJOR = "1"
SCHEMA_VERSION = "1.0"
