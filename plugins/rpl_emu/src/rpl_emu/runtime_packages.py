"""ROCm's runtime out of Debian's packages: fetched once into the user's cache, without root.

``data/runtimes.json`` names the packages with their SHA-256, so that it does not matter who sends them. Where
they can't be had any more, apt says what the suite holds today, by its own keys. A folder belongs to exact
versions (``versions.txt`` in it); in it everything lies as it would under ``/``.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import posixpath
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.files import cache_folder, read_regular
from rpl_core.text import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    import http.client
    import tarfile

#: By the name of what is offered, Debian's suites, the preferred one last. The first is the default.
SUITES = {"forky": ("forky",), "trixie": ("trixie",), "experimental": ("sid", "experimental")}
LIBRARIES = "usr/lib/x86_64-linux-gnu"
_OLDEST_LLVM = 19
_LARGEST_LIST_BYTES = 1 << 16
#: Of Debian, of AMD.
_HIP_PACKAGE = re.compile(r"libamdhip64-\d+|hip-runtime-amd")
#: Debian's own mirror, and its archive of all days, which keeps what a suite has replaced (DATE of the list).
_MIRRORS = ("https://deb.debian.org/debian", "https://snapshot.debian.org/archive/debian/DATE")
TIMEOUT_S = 30.0
_BLOCK_BYTES = 1 << 20
#: A package's file: the archive format of ar(5), of which only the member with the files is wanted.
_AR_MAGIC, _AR_HEADER_BYTES = b"!<arch>\n", 60
_DATA = "data.tar"
#: What one package may unfold to (AMD's largest takes some 0.2 GB).
_MOST_UNPACKED_BYTES = 4 << 30
_NO_SUCH_FILE = 404
#: Python's, of names and times that no system has, and of a file where a folder is.
_OF_ODD_MEMBERS = (ValueError, OverflowError, IsADirectoryError, NotADirectoryError, FileExistsError)


@frozen
class Told:
    """Who hears what goes on: ``note`` of what was decided, ``step`` of each package."""

    note: Callable[[str], None]
    step: Callable[[str], None]


@frozen
class Package:
    """One package as a list names it; ``path`` from the root of a mirror."""

    name: str
    version: str
    path: str
    size_bytes: int
    sha256: str


@frozen
class Origin:
    """``mirrors`` that are asked in turn; ``whose`` their packages are, ``said_by`` which list."""

    mirrors: list[str]
    whose: str
    said_by: str
    remedy: str


def debian(mirror: str | None, date: str) -> Origin:
    """``mirror`` alone, or Debian's own and its archive of the day ``date``."""
    return Origin(
        [mirror] if mirror else [one.replace("DATE", date) for one in _MIRRORS],
        "Debian",
        "the list of this rpl",
        "with a network, or with --mirror URL of a mirror of Debian that is reached from here",
    )


def _kept() -> Path | None:
    """Where fetched runtimes are kept; None without a home."""
    folder = cache_folder()
    return None if folder is None else folder / "rocm-runtime"


def fetched() -> list[Path]:
    """The folders that were fetched, the newest last."""
    kept = _kept()
    return [] if kept is None else sorted((path.parent for path in kept.glob("*/versions.txt")), key=_used)


def hip_version(folder: Path) -> str:
    """Of a fetched folder, as its package has it; the folder's name where it holds no HIP."""
    for line in read_regular(folder / "versions.txt", _LARGEST_LIST_BYTES).decode().splitlines():
        name, _, version = line.partition(" ")
        if _HIP_PACKAGE.fullmatch(name):
            return f"HIP {version}"
    return folder.name


def with_llvm() -> Path | None:
    """The newest of them whose LLVM the emulator can decode instructions with."""

    def version(library: Path) -> int:
        return int(library.name.split(".")[2])  # libLLVM.so.21.1

    for folder in reversed(fetched()):
        if any(version(one) >= _OLDEST_LLVM for one in (folder / LIBRARIES).glob("libLLVM.so.[0-9]*")):
            return folder
    return None


def _used(folder: Path) -> float:
    return (folder / "versions.txt").stat().st_mtime


def listed(suite: str) -> tuple[list[Package], str]:
    """What the list of this rpl names for one of ``SUITES``, and the day that it is of."""
    from importlib.resources import files

    found = json.loads((files("rpl_emu") / "data" / "runtimes.json").read_text(encoding="utf-8"))
    return [Package(*one) for one in found["suites"][suite]], found["date"]


def default_packages() -> tuple[list[Package], str]:
    """As ``listed``, of the default."""
    return listed(next(iter(SUITES)))


@contextmanager
def locked_cache(mirror: str | None) -> Iterator[Path]:
    """Where runtimes are kept, for one process at a time; ``mirror`` has to be an address."""
    if mirror is not None and not mirror.startswith(("http://", "https://")):
        raise UsageError(f"{mirror!r} is no address of a mirror", next_step="--mirror https://HOST/debian")
    cache = _kept()
    if cache is None:
        raise MissingError("there is no home folder to keep it in", next_step="set HOME or XDG_CACHE_HOME")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes may ask at the same time
        yield cache


def get_runtime(suite: str | None, mirror: str | None, *, latest: bool, told: Told) -> Path:
    """The folder of a runtime, fetched where it is not there. Raises MissingError.

    Without ``suite`` the default, or what else can be had, which is told. ``mirror`` is asked alone. With
    ``latest`` apt says the versions.
    """
    with locked_cache(mirror) as cache:
        default, fallback, *_ = SUITES
        try:
            return _of_suite(cache, suite or default, mirror, latest=latest, told=told)
        except MissingError as error:
            if suite is not None or mirror is not None:
                raise
            try:
                folder = _of_suite(cache, fallback, mirror, latest=latest, told=told)
            except MissingError:
                raise error from None
            told.note(f"{fallback} instead of {default}, since {error.one_line()}")
            return folder


def _of_suite(cache: Path, suite: str, mirror: str | None, *, latest: bool, told: Told) -> Path:
    packages, date = listed(suite)
    kind = f"{'-'.join(SUITES[suite])}-hip"
    versions = [(one.name, one.version) for one in packages]
    folder = folder_of(cache, kind, versions)
    if not latest:
        if folder.is_dir():
            return touched(folder)
        try:
            with tempfile.TemporaryDirectory(dir=cache) as archives:
                unpack(download(packages, debian(mirror, date), Path(archives), told), folder, versions)
        except MissingError as error:
            if mirror:
                raise
            missing = error
        else:
            return folder
    try:
        return _by_apt(cache, kind, SUITES[suite], told)
    except MissingError as error:
        # Of other versions than the list's, but whole: better than none where there is no network.
        if there := [one for one in fetched() if one.name.startswith(f"{kind}-")]:
            return there[-1]
        raise error if latest else missing from error


def _by_apt(cache: Path, kind: str, suites: Sequence[str], told: Told) -> Path:
    from rpl_emu.apt import Apt

    apt = Apt(cache / "apt" / "-".join(suites), suites)
    updated = apt.update()
    there = [one for one in fetched() if one.name.startswith(f"{kind}-") and _used(one) > updated]
    if there:
        return there[-1]
    packages = apt.versions()
    folder = folder_of(cache, kind, packages)
    if not folder.is_dir():
        told.note(f"{counted(len(packages), 'package')} by apt from {apt.mirror}")
        archives = apt.download(packages)
        unpack(archives, folder, packages)
        for archive in archives:
            archive.unlink()
    return touched(folder)


def folder_of(cache: Path, kind: str, versions: Sequence[tuple[str, str]]) -> Path:
    return cache / f"{kind}-{hashlib.sha256(_text(versions).encode()).hexdigest()[:12]}"


def _text(versions: Sequence[tuple[str, str]]) -> str:
    return "".join(f"{name} {version}\n" for name, version in versions)


def touched(folder: Path) -> Path:
    (folder / "versions.txt").touch()
    return folder


def download(packages: Sequence[Package], origin: Origin, folder: Path, told: Told) -> list[Path]:
    """Their files in ``folder``, each with the hash that is known of it. Raises MissingError."""
    total, done = sum(one.size_bytes for one in packages), 0
    told.note(f"{counted(len(packages), 'package')} of {origin.whose}, {total / 1e6:.0f} MB, once")
    mirrors, paths = list(origin.mirrors), []
    for number, package in enumerate(packages, 1):
        told.step(f"{package.name} {package.version}, {done / 1e6:.0f} of {total / 1e6:.0f} MB")
        paths.append(folder / f"{number}.deb")
        download_one(package, origin, mirrors, paths[-1])
        done += package.size_bytes
    return paths


def download_one(package: Package, origin: Origin, mirrors: list[str], target: Path) -> None:
    """From the first of ``mirrors`` that has it; one that can't be reached is not asked for others again."""
    import http.client
    import urllib.error
    import urllib.request

    reasons = []
    for mirror in tuple(mirrors):
        address = f"{mirror.rstrip('/')}/{package.path}"
        try:
            with (
                urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer,  # noqa: S310 - http(s), see get_runtime
                target.open("wb") as file,
            ):
                if _copied_sha256(answer, file, package.size_bytes) == package.sha256:
                    return
            reasons.append(
                f"{address} is another file than {origin.said_by} says (its size or SHA-256 differs)"
            )
        except urllib.error.HTTPError as error:
            reasons.append(f"{address} answers {error.code} {error.reason}")
            if error.code != _NO_SUCH_FILE:
                mirrors.remove(mirror)
        except (OSError, http.client.HTTPException, ValueError) as error:
            reasons.append(f"{mirror} can't be reached ({getattr(error, 'reason', None) or error})")
            mirrors.remove(mirror)
    raise MissingError(
        f"{' '.join(('the package', package.name, package.version)).rstrip()} can't be had: "
        + ("; ".join(reasons) or "no mirror can be reached"),
        next_step=origin.remedy,
    )


def _copied_sha256(source: http.client.HTTPResponse, file: BinaryIO, size_bytes: int) -> str:
    """Of what was copied, at most one block more than it should be; empty where that has another size."""
    digest, copied = hashlib.sha256(), 0
    while copied <= size_bytes and (block := source.read(_BLOCK_BYTES)):
        file.write(block)
        digest.update(block)
        copied += len(block)
    return digest.hexdigest() if copied == size_bytes else ""


def unpack(
    archives: Sequence[Path],
    folder: Path,
    versions: Sequence[tuple[str, str]],
    finish: Callable[[Path], None] = lambda _: None,
) -> None:
    """Whole or not at all: an interrupted call leaves no folder that looks complete, nor does ``finish`` that
    raises.
    """
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        root = Path(unfinished, "root").resolve()
        root.mkdir()
        for archive in archives:
            with archive.open("rb") as stream:
                _unpack_one(stream, root, archive.name)
        _check_links(root)
        finish(root)
        (root / "versions.txt").write_text(_text(versions), encoding="utf-8")
        root.rename(folder)


def _check_links(root: Path) -> None:
    """Once more, when all lies there: a link that stayed inside may lead out by one that came later."""
    for place, folders, files in os.walk(root):
        for path in (Path(place, name) for name in (*folders, *files)):
            if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
                raise _outside(path.relative_to(root))


def _outside(member: str | Path) -> BadDataError:
    return BadDataError(f"a package holds {member}, which does not belong below its root")


def _unpack_one(stream: BinaryIO, root: Path, name: str) -> None:
    if stream.read(len(_AR_MAGIC)) != _AR_MAGIC:
        raise BadDataError(f"{name} is no Debian package")
    while len(header := stream.read(_AR_HEADER_BYTES)) == _AR_HEADER_BYTES:
        member, size = header[:16].decode("ascii", "replace").strip().rstrip("/"), header[48:58].strip()
        if not size.isdigit():
            break
        if member in (f"{_DATA}.xz", f"{_DATA}.gz"):
            _unpack_data(stream, root, name)
            return
        stream.seek(int(size) + int(size) % 2, os.SEEK_CUR)
    raise BadDataError(
        f"{name} holds no {_DATA}.xz or .gz", cause="it is packed in a way that is newer than this rpl"
    )


def _unpack_data(stream: BinaryIO, root: Path, name: str) -> None:
    import tarfile

    try:
        with tarfile.open(fileobj=stream, mode="r|*") as members:
            # Python 3.10 has filters of its own in some releases only.
            members.extraction_filter = lambda member, _: member
            members.extractall(root, members=_checked(members, root))  # noqa: S202
    except (tarfile.TarError, EOFError, *_OF_ODD_MEMBERS) as error:
        raise BadDataError(f"{name} is damaged: {error}") from error


def _checked(members: Iterable[tarfile.TarInfo], root: Path) -> Iterator[tarfile.TarInfo]:
    """Files, folders and links that stay below the root, without owners and special modes. Each is looked at
    when what came before it lies there, so that no chain of links leads out.
    """
    left = _MOST_UNPACKED_BYTES
    for member in members:
        place = root / member.name
        folder = root if place == root else place.parent
        target = folder / member.linkname if member.issym() else root / member.linkname
        plain = member.isfile() or member.isdir() or member.issym() or member.islnk()
        # Where the links on the way lead by now; none is written through at the end of it.
        inside = all(Path(os.path.realpath(one)).is_relative_to(root) for one in (folder, target))
        named = posixpath.isabs(member.name) or ".." in PurePosixPath(member.name).parts
        if named or not plain or not inside or (place.is_symlink() and not member.issym()):
            raise _outside(member.name)
        left -= member.size
        if left < 0:
            raise BadDataError(f"a package unfolds to more than {_MOST_UNPACKED_BYTES >> 30} GiB")
        member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
        member.mode &= stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH
        yield member
