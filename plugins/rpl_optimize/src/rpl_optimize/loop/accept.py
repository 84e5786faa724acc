"""Write the accepted source where the user finds it. Their own file changes only with ``--in-place``."""

from __future__ import annotations

import difflib
import errno
import hashlib
import itertools
import os
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_core.files import storage_error, write_atomic
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_optimize.loop.session import OptimizeRequest


#: What file systems without hard links say.
_NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


@frozen
class Written:
    """``before_sha256``: what was at ``path``, ``None`` for a new file."""

    path: Path
    sha256: str
    before_sha256: str | None
    backup: Path | None = None


def digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def write_accepted(request: OptimizeRequest, text: bytes, original: bytes, ours: str | None) -> Written:
    """Write ``text``. In place, ``original`` is kept beside it first, and the file must be as it was.

    ``ours`` is the hash of what this session wrote last. Raises ``BadDataError`` when the user's file has
    been changed meanwhile, and the storage errors; the file is then as before.
    """
    path = request.source
    try:
        if not request.in_place:
            return _write_beside(request, text, ours)
        known = {digest(original), ours, digest(text)}
        before = _require(path, known)
        backup = _keep(path, original)
        _require(path, known)  # keeping the original took time
        write_atomic(path.resolve(), text, mode=_mode(path))
        return Written(path, digest(text), before, backup)
    except OSError as error:
        refusal = storage_error(path, error)
        refusal.next_step = "make it possible and resume: the accepted version is in the session's directory"
        raise refusal from error


def is_changed(source: Path, original: bytes) -> bool:
    """Whether the user's file is another one than at the beginning, or gone."""
    try:
        return digest(source.read_bytes()) != digest(original)
    except OSError:
        return True


def unified_diff(before: bytes, after: bytes, name: str) -> str:
    """The change as people read it."""
    old, new = (text.decode("utf-8", "replace").splitlines(keepends=True) for text in (before, after))
    lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _hash_of(path: Path) -> str | None:
    try:
        return digest(path.read_bytes())
    except FileNotFoundError:
        return None


def _require(path: Path, known: Container[str | None]) -> str | None:
    before = _hash_of(path)
    if before is None or before not in known:
        raise BadDataError(
            f"{path} was changed by someone else during the session, so it is not replaced",
            next_step="take the accepted version from the session's directory",
        )
    return before


def _write_beside(request: OptimizeRequest, text: bytes, ours: str | None) -> Written:
    """Whatever is there already is the user's, and a number is added, unless its hash is ``ours``."""
    source, sha256 = request.source, digest(text)
    plain = source.with_name(f"{source.stem}{request.suffix}{source.suffix}")
    numbered = (plain.with_name(f"{plain.stem}_{number}{plain.suffix}") for number in itertools.count(2))
    for path in itertools.chain((plain,), numbered):
        if _is_ours(path, (ours, sha256)):  # an interrupted writing left ours as well
            before = _hash_of(path)
            write_atomic(path, text, mode=_mode(source))
            return Written(path, sha256, before)
        if _write_new(path, text, _mode(source)):
            return Written(path, sha256, None)
    raise AssertionError("numbers do not end")


def _write_new(path: Path, text: bytes, mode: int) -> bool:
    """Write a file that is not there; false where something is, whoever was quicker."""
    if os.path.lexists(path):
        return False
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    write_atomic(temporary, text, mode=mode)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        write_atomic(path, text, mode=mode)
    finally:
        temporary.unlink(missing_ok=True)
    return True


def _is_ours(path: Path, ours: Container[str | None]) -> bool:
    return path.is_file() and not path.is_symlink() and _hash_of(path) in ours


def _keep(path: Path, original: bytes) -> Path:
    """A copy of the user's own version beside the file; one that is there already and equal is enough."""
    backup, number = path.with_name(f"{path.name}.rpl-backup"), 2
    while os.path.lexists(backup) and not _is_ours(backup, (digest(original),)):
        backup = path.with_name(f"{path.name}.rpl-backup{number}")
        number += 1
    if not backup.exists():
        write_atomic(backup, original, mode=_mode(path))
    return backup


def _mode(path: Path) -> int:
    """The permissions of the source: what is private stays private."""
    return path.stat().st_mode & 0o777
