"""How wide the text on stdout may be."""

from __future__ import annotations

import shutil
import sys

__all__ = ["NARROWEST", "USUAL_WIDTH", "text_width"]

#: Characters of a line where no terminal says otherwise (chosen).
USUAL_WIDTH = 100
#: Narrower terminals get lines of this length all the same (chosen).
NARROWEST = 60


def text_width() -> int:
    """Columns of the terminal behind stdout; a fixed width elsewhere, so that logs compare."""
    if sys.stdout is None or not sys.stdout.isatty():
        return USUAL_WIDTH
    return max(NARROWEST, shutil.get_terminal_size(fallback=(USUAL_WIDTH, 24)).columns)
