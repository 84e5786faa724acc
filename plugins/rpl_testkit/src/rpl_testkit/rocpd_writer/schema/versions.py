"""The rocpd schema variants 3.0.0 to 3.0.5 and the order between them.

What each one added is kept beside the tables and views (`since=`); this file only knows their names.
Source: rocprofiler-sdk-rocpd schema history (versions.yml) and docs of the SDK change log.
"""

from __future__ import annotations

from typing import Final

from rpl_core.errors import UsageError

__all__ = ["SCHEMA_VERSIONS", "patch_level", "recorded_version"]

SCHEMA_VERSIONS: Final = ("3", "3.0.0", "3.0.1", "3.0.2", "3.0.3", "3.0.4", "3.0.5")


def patch_level(schema_version: str) -> int:
    """Return N of `3.0.N`; `"3"` (what ROCm 7.0 to 7.2 records) is level 0."""
    if schema_version not in SCHEMA_VERSIONS:
        raise UsageError(
            f"rocpd schema version {schema_version!r} is not one that can be written",
            next_step=f"use one of {', '.join(SCHEMA_VERSIONS)}",
        )
    return 0 if schema_version == "3" else int(schema_version.rsplit(".", 1)[1])


def recorded_version(schema_version: str) -> str:
    """Return the text for `rocpd_metadata`: 3.0.0 files of ROCm 7.0 to 7.2 say just `3`."""
    return "3" if patch_level(schema_version) == 0 else schema_version
