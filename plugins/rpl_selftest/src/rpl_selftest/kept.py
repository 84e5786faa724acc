"""The last self-test of each device, kept among the user's own settings, and the one file to send back."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import socket
import tarfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.errors import BadDataError, MissingError
from rpl_core.files import config_folder, parse_json, read_regular, write_atomic
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus
from rpl_core.interfaces.document import DocumentContract
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.text import readable
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rpl_selftest.check import SelftestDocument

_MOST_BYTES = 1 << 20
_MOST_NAMED = 6
_REMEDY = "delete the file and run `rpl selftest` again"


@frozen
class KeptResult:
    """Of one device. ``origin`` is that of its times."""

    device: str
    origin: str
    date: str
    refuted: tuple[str, ...]
    confirmed: int
    not_possible: int

    @property
    def line(self) -> str:
        """`selftest of this machine: 2 refuted (times, counters-bytes), mi300x, 2026-11-26`."""
        named = ", ".join(self.refuted[:_MOST_NAMED])
        more = ", ..." if len(self.refuted) > _MOST_NAMED else ""
        count = f"{len(self.refuted)} refuted ({named}{more})" if self.refuted else "nothing refuted"
        label = (
            "" if self.origin == "measured" else f", {self.origin}: nothing of it was measured on hardware"
        )
        return f"selftest of this machine: {count}, {self.device}, {self.date}{label}"


def kept_path() -> Path | None:
    """Among the user's settings, beside the measured ceilings; ``None`` without a home folder."""
    folder = config_folder()
    return None if folder is None else folder / "selftest.json"


def read_kept() -> Mapping[str, KeptResult]:
    """By the name of the device; nothing where there is no file. Raises ``BadDataError``."""
    path = kept_path()
    if path is None:
        return {}
    try:
        content = parse_json(read_regular(path, _MOST_BYTES), path)
        devices = content["devices"].items()
        return {str(device): _result(str(device), entry) for device, entry in devices}
    except MissingError:
        return {}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadDataError(
            f"what the self-test kept in {path} can't be read", cause=repr(error)[:100], next_step=_REMEDY
        ) from None


def _result(device: str, entry: Any) -> KeptResult:
    refuted = tuple(readable(str(name), 40) for name in entry["refuted"])
    origin, date = (readable(str(entry[key]), 20) for key in ("origin", "date"))
    return KeptResult(
        readable(device, 40), origin, date, refuted, int(entry["confirmed"]), int(entry["not_possible"])
    )


def keep(document: SelftestDocument) -> Path | None:
    """Put it in the place of an earlier one. ``None``: nothing was recorded, or only that was measured.

    Raises ``MissingError`` without a home folder, and ``OSError``.
    """
    if document.device is None or document.origin is None:
        return None
    kept, path = dict(read_kept()), kept_path()
    if path is None:
        raise MissingError("there is no home folder", next_step="set HOME or XDG_CONFIG_HOME")
    earlier = kept.get(document.device)
    if earlier is not None and earlier.origin == "measured" != document.origin:
        return None
    kept[document.device] = KeptResult(
        document.device,
        document.origin,
        document.date,
        tuple(line.check for line in document.lines if line.outcome == "refuted"),
        document.confirmed,
        document.not_possible,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    devices = {name: _result_json(result) for name, result in sorted(kept.items())}
    write_atomic(path, json.dumps({"schema_version": "1.0", "devices": devices}, indent=2) + "\n")
    return path


def _result_json(result: KeptResult) -> dict[str, Any]:
    return {
        "origin": result.origin,
        "date": result.date,
        "refuted": list(result.refuted),
        "confirmed": result.confirmed,
        "not_possible": result.not_possible,
    }


# The last self-test, as `rpl doctor` and the provenance of documents name it; it changes no figure.
#
# And the contract of ``selftest.json``, whose model is imported where somebody looks at it.

_WHAT_TO_DO = "`rpl selftest` says which page rests on each; send its archive to the project"


class SelftestContract(DocumentContract):
    name = "selftest"
    summary = "a self-test of a machine"

    def model(self) -> type[SelftestDocument]:
        from rpl_selftest.check import SelftestDocument

        return SelftestDocument

    def found_in(self, directory: Path) -> str:
        return f"see it with `rpl selftest --show {directory / 'selftest.tar.gz'}`"


class SelftestCheck(DoctorCheck):
    name = "selftest"
    summary = "what the last self-test of this machine refuted"

    def check(self) -> DoctorReport:
        results = read_kept().values()
        refuted = [result for result in results if result.refuted]
        # What a stand-in or an emulator refutes is told, and breaks nothing here.
        broken = any(result.origin == "measured" for result in refuted)
        told = "; ".join(result.line for result in refuted or results)
        if not broken:
            return DoctorReport(DoctorStatus.OK, told)
        return DoctorReport(DoctorStatus.BROKEN, told, "figures that rest on what was refuted", _WHAT_TO_DO)


class SelftestAnalyzer(Analyzer):
    """No fact: a remark in the provenance of documents about the device that was tested, and a diagnostic
    where something was refuted.

    It reads the user's own settings, as measured ceilings are read.
    """

    name = "selftest"
    summary = "names the self-test of this machine, and what it refuted"

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        if context.device is None:
            return AnalysisOutcome({})
        try:
            result = read_kept().get(context.device.name)
        except BadDataError as error:
            unread = Diagnostic("selftest.unreadable", error.fact, cause=error.cause, remedy=error.next_step)
            return AnalysisOutcome({}, (unread,))
        if result is None or result.origin != context.recording.origin.value:
            return AnalysisOutcome({})
        if not result.refuted:
            return AnalysisOutcome({}, (), (result.line,))
        refuted = Diagnostic("selftest.refuted", result.line, remedy=_WHAT_TO_DO, count=len(result.refuted))
        return AnalysisOutcome({}, (refuted,), (result.line,))


# The one file to send back: written without what identifies who ran it, read as if an enemy had made it.


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
_MOST_PACKED, _MOST_UNPACKED = 4 << 20, 32 << 20
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
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
            for entry in archive:
                if entry.name not in _MEMBERS or entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
                    raise _no_archive(path, f"it holds {entry.name[:80]!r}, which no self-test writes")
                if entry.name in files:
                    raise _no_archive(path, f"it holds {entry.name} twice")
                content = archive.extractfile(entry)
                assert content is not None
                files[entry.name] = content.read(_MOST_UNPACKED)
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise _no_archive(path, str(error)[:200]) from None
    if DOCUMENT not in files:
        raise _no_archive(path, f"it holds no {DOCUMENT}")
    return files


def _unpacked(packed: bytes, path: Path) -> bytes:
    reader = zlib.decompressobj(wbits=31)
    try:
        plain = reader.decompress(packed, _MOST_UNPACKED)
    except zlib.error as error:
        raise _no_archive(path, str(error)) from None
    if reader.unconsumed_tail:
        raise _no_archive(path, f"it unpacks to more than {_MOST_UNPACKED >> 20} MiB")
    if not reader.eof:
        raise _no_archive(path, "it was cut off")
    return plain


def document_in(parts: Mapping[str, bytes], path: Path) -> SelftestDocument:
    """The document of an archive that ``read_archive`` read. Raises ``BadDataError``."""
    from pydantic import ValidationError

    from rpl_selftest.check import SelftestDocument

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
