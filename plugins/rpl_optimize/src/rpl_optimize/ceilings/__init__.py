"""Ceilings of the user's own device: small kernels of known work, their rates, and where these are kept."""

from __future__ import annotations

import os
from pathlib import Path


def kept_path() -> Path:
    """In ``$XDG_CONFIG_HOME/rpl``, else ``~/.config/rpl``."""
    folder = os.environ.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "rpl" / "ceilings.json"
