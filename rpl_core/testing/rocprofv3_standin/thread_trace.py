"""Thread trace: the stand-in has no trace decoder and says so in the words of the real driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["decoder_missing"]


def decoder_missing(options: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Return the message about the folders that were searched for the decoder library."""
    given = options.get("att_library_path")
    if given:
        folders: object = list(given)
    elif environment.get("ROCPROF_ATT_LIBRARY_PATH"):
        folders = environment["ROCPROF_ATT_LIBRARY_PATH"]
    else:
        folders = [*environment.get("LD_LIBRARY_PATH", "").split(":"), "/opt/rocm/lib"]
    return f"rocprof-trace-decoder library path not found in {folders}"
