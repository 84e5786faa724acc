"""rpl (ROCm Perf Lab): profile AMD GPU programs, explain their limits, prove every gain.

This package is the core. It holds the hook specs, the plugin host, the trace model, the document
contracts and the analyses that no device owns. Plugins need one name from here: ``hookimpl``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rpl_core.hookspecs import hookimpl

__all__ = ["RPL_API", "__version__", "hookimpl"]

__version__ = "0.1.0"

#: Version of the hook contract. A plugin module states the one it was written for.
RPL_API = 2


def __getattr__(name: str) -> Any:
    # pluggy costs 16 ms; `rpl --version` must not pay for it.
    if name == "hookimpl":
        from rpl_core.hookspecs import hookimpl

        return hookimpl
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
