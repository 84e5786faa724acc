"""How wide the text on stdout may be."""

from __future__ import annotations

import shutil
import sys


def text_width() -> int:
    """Columns of the terminal behind stdout; a fixed width elsewhere, so that logs compare."""
    from rpl_core.text.fit import NARROWEST, USUAL_WIDTH

    if sys.stdout is None or not sys.stdout.isatty():
        return USUAL_WIDTH
    return max(NARROWEST, shutil.get_terminal_size(fallback=(USUAL_WIDTH, 24)).columns)
