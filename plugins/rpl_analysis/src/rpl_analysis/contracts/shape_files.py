"""The committed shapes of the contracts (``rpl_core.interfaces.document``), read without making a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: One file per document, written by ``make schemas``.
SHAPES = Path(__file__).with_name("shapes")


def read_shape(name: str) -> dict[str, Any]:
    """The shape of document ``name``."""
    shape: dict[str, Any] = json.loads((SHAPES / f"{name}.json").read_bytes())
    return shape
