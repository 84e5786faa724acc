"""Data for the page's script: JSON that can't end its element, and numpy columns as base64."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray

__all__ = ["column", "counts", "script_json"]

#: Inside a script element only these could begin a tag or a comment or, in old parsers, end a line.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def script_json(value: Any) -> Markup:
    """``value`` as JSON for a ``<script type="application/json">`` element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return Markup(text)  # noqa: S704 - every character that HTML knows is escaped above


def column(values: NDArray[np.generic], kind: DTypeLike) -> str:
    """``values`` as little-endian ``kind`` in base64; what typed arrays of the script read."""
    import numpy as np

    wanted = np.dtype(kind).newbyteorder("<")
    return base64.b64encode(np.ascontiguousarray(values.astype(wanted)).tobytes()).decode("ascii")


def counts(values: NDArray[np.int64]) -> dict[str, str]:
    """Whole numbers from 0 on: 4 bytes each where they all fit, else float64, exact below 2^53."""
    kind = "u4" if not values.size or int(values.max()) < 1 << 32 else "f8"
    return {"kind": kind, "data": column(values, kind)}
