"""File writes: the old content or the new one, never a part; and nothing but regular files is replaced."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path


def write_atomic(
    path: Path, content: str | bytes, *, mode: int | None = None, named: bool = False, synced: bool = True
) -> None:
    """Write ``content`` to a temporary file beside ``path``, sync it and rename it over ``path``.

    ``mode`` are its permissions; else those of the file that it replaces, or of any new file. With ``named``
    the user named this very file: links are followed, and pipes written to; else they are an error. Nothing
    is ever written to a device: a disk would be lost. Raises ``OSError`` (such as ENOSPC) with ``path`` as
    its file name; the old file is then intact. What can be made again need not be ``synced``: a power cut
    may then leave a file of other content, such as none, and nobody waits for the disk.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        status = path.stat() if path.exists() else None
        regular = status is None or stat.S_ISREG(status.st_mode)
        device = status is not None and (stat.S_ISBLK(status.st_mode) or stat.S_ISCHR(status.st_mode))
        if device or (not named and (path.is_symlink() or not regular)):
            what = "There is a device" if device else "There is something that is no regular file"
            raise FileExistsError(errno.EEXIST, what)
        if regular:
            _replace(path.resolve() if named else path, data, mode, status, synced=synced)
        else:
            with os.fdopen(os.open(path, os.O_WRONLY), "wb") as stream:
                stream.write(data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _replace(
    path: Path, data: bytes, mode: int | None, status: os.stat_result | None, *, synced: bool
) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".rpl-", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            if synced:
                os.fsync(descriptor)
            if status is not None:
                with contextlib.suppress(PermissionError):  # a file of somebody else becomes ours
                    os.fchown(descriptor, status.st_uid, status.st_gid)
                mode = stat.S_IMODE(status.st_mode) if mode is None else mode
            os.fchmod(descriptor, 0o666 & ~_umask() if mode is None else mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
