"""Makes the change of a trial where Python loads the module: each Python process imports this first.

``trial.py`` puts this folder on PYTHONPATH, and the change into two variables.
"""

from __future__ import annotations

import os
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType


def load_instead(path: str, source: str) -> None:
    """From now on the module of ``path`` is ``source``."""
    read = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        if os.path.realpath(self.path) == os.path.realpath(path):
            # Compiled here, so that no cached byte code counts and none is written.
            return compile(source, self.path, "exec", dont_inherit=True)
        return read(self, fullname)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


if __name__ == "sitecustomize" and "RPL_CHANGED_SOURCE" in os.environ:
    load_instead(
        os.environ["RPL_CHANGED_FILE"], Path(os.environ["RPL_CHANGED_SOURCE"]).read_text(encoding="utf-8")
    )
