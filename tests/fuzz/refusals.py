"""What a refusal must look like, whatever was damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpl_core.errors import RplError


def check_refusal(error: RplError, about: str = "") -> None:
    """One fact of readable length, which names ``about``."""
    assert error.fact.strip()
    assert about in error.fact
    assert len(error.fact) < 4000
