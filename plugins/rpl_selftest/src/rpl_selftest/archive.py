"""The one file to send back: written without what identifies who ran it, read as if an enemy had made it.

An archive is a gzipped tar of a few plain files by fixed names. Nothing of it is ever unpacked to a disk.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import socket
import tarfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_core.files.atomic import write_atomic
from rpl_core.files.bounded import parse_json, read_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rpl_selftest.contract import SelftestDocument

# The self-test as a page for a browser: one file, no script, nothing from elsewhere.


def html_page(document: SelftestDocument) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("rpl_selftest", ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    template = environment.get_template("page.html.j2")
    return template.render(document=document, summary=summary(document), label=document.label)


def summary(document: SelftestDocument) -> str:
    """One line; what the outcomes are about stands in it."""
    return (
        f"{document.confirmed} confirmed, {document.refuted} refuted, {document.not_possible} not possible "
        f"({document.about})"
    )


NAME = "selftest.tar.gz"
DOCUMENT, PAGE, PROGRAM = "selftest.json", "selftest.html", "known_work.hip"
_MEMBERS = (DOCUMENT, PAGE, PROGRAM)
#: A self-test takes some 30 kB (chosen: what nobody's own archive reaches).
_MOST_PACKED, _MOST_BYTES = 4 << 20, 32 << 20
#: A name as short as `me` stands in ordinary words, and everybody's administrator is called root.
_SHORTEST_NAME, _NOBODY = 3, frozenset({"root", "user", "nobody", "localhost", "rpl"})
#: Anybody's home, whoever runs this: output of others names paths of those who built them.
_HOME = re.compile(r"/(?:home|Users)/[^/\s\"':;,|)\]]+")
_DOMAIN = r"(?:\.[A-Za-z0-9-]+)*"
_SECRET = re.compile(r"TOKEN|SECRET|PASS|CREDENTIAL|KEY(?:$|_)|AUTH", re.IGNORECASE)
_SHORTEST_SECRET = 6


def scrubber(folders: Iterable[Path] = ()) -> Callable[[str], str]:
    """A function that takes what identifies this machine or its user out of a text.

    Paths of ``folders``, of the working directory and of every home; the host's name with its domain, the
    user's names; and values of environment variables that by their name are secret.
    """
    known = (*folders, Path.home(), Path.cwd())
    places = {str(path) for place in known for path in (place, place.resolve())} - {"/"}
    secrets = {value for name, value in os.environ.items() if _SECRET.search(name)}
    ordered = [*_long(secrets, _SHORTEST_SECRET), *_long(places, 2)]
    host = socket.gethostname()
    patterns = [_HOME]
    patterns += [_word(name, _DOMAIN) for name in _long({host, host.partition(".")[0]}, _SHORTEST_NAME)]
    patterns += [_word(name) for name in _long(set(_user_names()), _SHORTEST_NAME)]

    def scrubbed(text: str) -> str:
        for place in ordered:
            text = text.replace(place, "...")
        for pattern in patterns:
            text = pattern.sub("...", text)
        return text

    return scrubbed


def _long(texts: set[str], least: int) -> list[str]:
    """Those that name something, the longest first: a host's whole name before its first part."""
    identifying = {text for text in texts if len(text) >= least and text.lower() not in _NOBODY}
    return sorted(identifying, key=lambda text: (-len(text), text))


def _word(name: str, behind: str = "") -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9]){behind}", re.IGNORECASE)


def _user_names() -> Iterable[str]:
    for variable in ("USER", "LOGNAME", "SUDO_USER"):
        yield os.environ.get(variable, "")
    try:
        import pwd

        yield pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):  # a container whose user nobody has named
        return


def write_archive(path: Path, document: SelftestDocument, page: str) -> None:
    """Equal content gives equal bytes: no owner, no time, no name of a folder. Raises ``OSError``."""
    from importlib.resources import files

    program = files("rpl_selftest").joinpath(f"programs/{PROGRAM}").read_bytes()
    content = document.model_dump_json(indent=2) + "\n"
    parts = {DOCUMENT: content.encode(), PAGE: page.encode(), PROGRAM: program}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    write_atomic(path, gzip.compress(packed.getvalue(), mtime=0))


def read_archive(path: Path) -> Mapping[str, bytes]:
    """Name to content. ``MissingError``: no such file; ``BadDataError``: it is anything but an archive."""
    plain = _unpacked(read_regular(path, _MOST_PACKED), path)
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
            for entry in archive:
                if entry.name not in _MEMBERS or entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
                    raise _no_archive(path, f"it holds {entry.name[:80]!r}, which no self-test writes")
                if entry.name in found:
                    raise _no_archive(path, f"it holds {entry.name} twice")
                content = archive.extractfile(entry)
                assert content is not None
                found[entry.name] = content.read(_MOST_BYTES)
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise _no_archive(path, str(error)[:200]) from None
    if DOCUMENT not in found:
        raise _no_archive(path, f"it holds no {DOCUMENT}")
    return found


def _unpacked(packed: bytes, path: Path) -> bytes:
    reader = zlib.decompressobj(wbits=31)
    try:
        plain = reader.decompress(packed, _MOST_BYTES)
    except zlib.error as error:
        raise _no_archive(path, str(error)) from None
    if reader.unconsumed_tail:
        raise _no_archive(path, f"it unpacks to more than {_MOST_BYTES >> 20} MiB")
    if not reader.eof:
        raise _no_archive(path, "it was cut off")
    return plain


def document_in(parts: Mapping[str, bytes], path: Path) -> SelftestDocument:
    """The document of an archive that ``read_archive`` read. Raises ``BadDataError``."""
    from pydantic import ValidationError

    from rpl_selftest.contract import SelftestDocument

    parse_json(parts[DOCUMENT], f"{path}: {DOCUMENT}")  # depth and numbers have bounds
    try:
        return SelftestDocument.model_validate_json(parts[DOCUMENT])
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))[:100]
        raise _no_archive(
            path, f"{DOCUMENT} breaks its contract at {place!r}: {first['msg'][:100]}"
        ) from None


def _no_archive(path: Path, cause: str) -> BadDataError:
    return BadDataError(
        f"{path} is no archive of rpl selftest", cause=cause, next_step=f"name a {NAME} that it wrote"
    )
