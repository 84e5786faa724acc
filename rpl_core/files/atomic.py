"""Atomic file writes: the old content or the new one, never a part."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomic(path: Path, content: str | bytes, *, mode: int | None = None) -> None:
    """Write ``content`` to a temporary file beside ``path``, sync it and rename it over ``path``.

    ``mode`` are its permissions; those of any new file where none are given. Raises ``OSError`` (for
    example ENOSPC) with ``path`` as its file name; the old file is then intact.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o666 & ~_umask() if mode is None else mode)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
