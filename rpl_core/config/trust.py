"""Whose settings files count in full: the user's own, root's, and those that they trusted as they are.

A settings file is found by walking upwards, so it may be anybody's. What it says about programs, plugins and
endpoints, and where rpl writes, counts only if nobody else could have written it: it belongs to the user or
to root (for root also to who called sudo, as git's ``safe.directory`` has it), and neither it nor a folder
above it may be written by everybody, by a group with others in it, or by whom an access control list names;
sticky folders may be. A file that was trusted by name is bound to its path and its content.
"""

from __future__ import annotations

import errno
import grp
import hashlib
import json
import os
import pwd
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.files.atomic import write_atomic
from rpl_core.files.bounded import open_regular
from rpl_core.files.user_folders import config_folder

#: Configuration files are written by hand; anything bigger is a mistake.
MAX_FILE_BYTES = 1 << 18
#: A record of trust: one path and one hash.
_MAX_RECORD_BYTES = 1 << 14
#: User identifiers have 32 bits.
_MOST_UID = (1 << 32) - 1


def read_settings_file(path: Path) -> tuple[bytes, os.stat_result]:
    """What ``path`` holds and whose it is, of one opening: nobody can change it in between.

    Raises ``UsageError`` for what is no regular file of at most ``MAX_FILE_BYTES``, or can't be read.
    """
    try:
        with open_regular(path, MAX_FILE_BYTES) as stream:
            return stream.read(MAX_FILE_BYTES), os.fstat(stream.fileno())
    except (BadDataError, MissingError) as error:
        raise UsageError(f"configuration file {error.fact}") from None


def why_distrusted(
    path: Path, status: os.stat_result, environment: Mapping[str, str] = os.environ
) -> str | None:
    """Why somebody else may have written ``path``, whose open file has ``status``; ``None``: nobody else."""
    ours = _own_users(environment)
    try:
        for owner in (status.st_uid, path.lstat().st_uid):  # of the file, and of a link to it
            if owner not in ours:
                return f"it belongs to another user (uid {owner})"
        who = _other_writers(path, status, ours)
        if who is not None:
            return f"it can be written by {who}"
        for folder in _folders_above(path):
            of_folder = folder.stat()
            who = None if of_folder.st_mode & stat.S_ISVTX else _other_writers(folder, of_folder, ours)
            if who is not None:
                return f"the folder {folder} can be written by {who}"
    except OSError as error:
        return f"nobody can tell whose it is ({error.strerror})"
    return None


def _other_writers(path: Path, status: os.stat_result, ours: frozenset[int]) -> str | None:
    """Who else may write ``path``, by its mode. With an access control list the group's bits are its mask."""
    if status.st_mode & stat.S_IWOTH:
        return "everybody"
    if not status.st_mode & stat.S_IWGRP:
        return None
    if _has_access_list(path):
        return "others, by an access control list"
    if status.st_gid in {0, *map(_group_of_one, ours)}:
        return None
    return f"a group (gid {status.st_gid})"


def _has_access_list(path: Path) -> bool:
    if not hasattr(os, "getxattr"):
        return False
    try:
        os.getxattr(path, "system.posix_acl_access")
    except OSError as error:
        # No list, or a file system that has none; whatever else keeps it from view counts as one.
        return error.errno not in (errno.ENODATA, errno.EOPNOTSUPP)
    return True


def _group_of_one(user: int) -> int | None:
    """The group that is ``user``'s alone: by custom it has their name, and no other member."""
    try:
        entry = pwd.getpwuid(user)
        group = grp.getgrgid(entry.pw_gid)
    except KeyError:
        return None
    alone = group.gr_name == entry.pw_name and {*group.gr_mem} <= {entry.pw_name}
    return group.gr_gid if alone else None


def _own_users(environment: Mapping[str, str]) -> frozenset[int]:
    user = os.geteuid()
    if user != 0:
        return frozenset((user, 0))
    caller = environment.get("SUDO_UID", "")
    known = caller.isascii() and caller.isdigit() and len(caller) <= 10 and int(caller) <= _MOST_UID
    return frozenset((0, int(caller)) if known else (0,))


def _folders_above(path: Path) -> Iterator[Path]:
    """Those of the file and, where it is a link, those of the link too."""
    yield from dict.fromkeys((*path.resolve().parents, *(path.parent.resolve() / path.name).parents))


def is_trusted(path: Path, content: bytes) -> bool:
    """Whether the user trusted ``path`` with this very ``content``."""
    record = _record_of(path)
    try:
        if record is None:
            return False
        told, status = read_settings_file(record)
        if len(told) > _MAX_RECORD_BYTES or why_distrusted(record, status) is not None:
            return False
        return bool(json.loads(told) == _binding(path, content))
    except (UsageError, ValueError, RecursionError):
        return False


def trust(path: Path, content: bytes) -> Path:
    """Remember that ``path`` is trusted with this ``content``; where that is kept. Raises ``OSError``."""
    record = _record_of(path)
    if record is None:
        raise UsageError("there is no home folder to remember it in", next_step="set HOME or XDG_CONFIG_HOME")
    record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomic(record, json.dumps(_binding(path, content), indent=1) + "\n", mode=0o600)
    return record


def _record_of(path: Path) -> Path | None:
    """One file per path, so that two commands at once lose nothing."""
    folder = config_folder()
    if folder is None:
        return None
    return folder / "trusted" / f"{hashlib.sha256(os.fsencode(_place(path))).hexdigest()}.json"


def _binding(path: Path, content: bytes) -> dict[str, str]:
    place = os.fsencode(_place(path)).decode("utf-8", "backslashreplace")
    return {"path": place, "sha256": hashlib.sha256(content).hexdigest()}


def _place(path: Path) -> Path:
    """Links of folders are followed: the same file by another way is the same."""
    return path.parent.resolve() / path.name
