"""Where rpl keeps what is the user's own: folders by the XDG Base Directory Specification.

A variable that is no absolute path is ignored, as the specification says.
"""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """``rpl`` in ``$XDG_CACHE_HOME`` or ``~/.cache``: what can be made again. ``None`` without a home."""
    return _folder("XDG_CACHE_HOME", ".cache")


def config_folder() -> Path | None:
    """``rpl`` in ``$XDG_CONFIG_HOME`` or ``~/.config``. ``None`` without a home."""
    return _folder("XDG_CONFIG_HOME", ".config")


def _folder(variable: str, usual: str) -> Path | None:
    named = os.environ.get(variable, "")
    if os.path.isabs(named):  # noqa: PTH117 - an empty text is no path
        return Path(named, "rpl")
    try:
        return Path.home() / usual / "rpl"
    except RuntimeError:
        return None
