"""The committed table of shapes (see ``rpl_core.contracts.shapes``), read without making a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

#: Written by ``make schemas``.
TABLE = Path(__file__).with_name("shapes.json")


def read_shapes() -> CoreSchema:
    """The core schema of a mapping with the four documents."""
    shapes: Any = json.loads(TABLE.read_bytes())
    return shapes  # type: ignore[no-any-return]
