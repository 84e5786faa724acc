"""Which release of ROCm the stand-in pretends to be, and what differs between them.

Facts: docs/reference/formats.md, 2.8 (formats, columns, repeatable --pmc, schema versions).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rpl_core.values import frozen

__all__ = ["EmulatedRocm", "emulated_rocm"]


@frozen
class EmulatedRocm:
    """One release: `schema_version` None means that rocpd output does not exist there."""

    rocm: str
    sdk: str
    schema_version: str | None
    repeatable_pmc: bool = False
    kernel_replay: bool = False

    @property
    def default_format(self) -> str:
        return "rocpd" if self.schema_version else "csv"

    @property
    def formats(self) -> tuple[str, ...]:
        common = ("csv", "json", "pftrace", "otf2")
        return (*common, "rocpd") if self.schema_version else common

    @property
    def wide_csv(self) -> bool:
        """Whether CSV has registers, Stream_Id and text agent ids (7.0 and later)."""
        return self.schema_version is not None


_RELEASES: Final = {
    "6.4": EmulatedRocm("6.4.0", "0.6.0", None),
    "7.0": EmulatedRocm("7.0.0", "1.0.0", "3"),
    "7.2": EmulatedRocm("7.2.0", "1.1.0", "3"),
    "7.13": EmulatedRocm("7.13.0", "1.3.0", "3", repeatable_pmc=True),
    "10.0": EmulatedRocm("10.0.0", "1.3.5", "3.0.3", repeatable_pmc=True),
    "10.0.1": EmulatedRocm("10.0.1", "1.4.1", "3.0.3", repeatable_pmc=True, kernel_replay=True),
}


def emulated_rocm(environment: Mapping[str, str]) -> EmulatedRocm:
    """Return the release named by `RPL_STANDIN_ROCM`, 7.2 by default. ValueError for an unknown one."""
    name = environment.get("RPL_STANDIN_ROCM", "7.2")
    if name not in _RELEASES:
        raise ValueError(f"RPL_STANDIN_ROCM={name} is not one of {', '.join(_RELEASES)}")
    return _RELEASES[name]
