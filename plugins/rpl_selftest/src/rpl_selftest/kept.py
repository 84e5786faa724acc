"""The last self-test of each device: ``selftest.json`` among the user's own settings, and who tells of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.errors import BadDataError, MissingError
from rpl_core.files.atomic import write_atomic
from rpl_core.files.bounded import parse_json, read_regular
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus
from rpl_core.interfaces.document import DocumentContract
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.text.safety import readable
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_selftest.contract import SelftestDocument

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


def kept_path() -> Path:
    """In ``$XDG_CONFIG_HOME/rpl``, else ``~/.config/rpl``, beside the measured ceilings."""
    folder = os.environ.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "rpl" / "selftest.json"


def read_kept() -> Mapping[str, KeptResult]:
    """By the name of the device; nothing where there is no file. Raises ``BadDataError``."""
    path = kept_path()
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
    """Put it in the place of an earlier one. ``None``: nothing was recorded, or only that was measured."""
    if document.device is None or document.origin is None:
        return None
    kept, path = dict(read_kept()), kept_path()
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
    devices = {name: _plain(result) for name, result in sorted(kept.items())}
    write_atomic(path, json.dumps({"schema_version": "1.0", "devices": devices}, indent=2) + "\n")
    return path


def _plain(one: KeptResult) -> dict[str, Any]:
    return {
        "origin": one.origin,
        "date": one.date,
        "refuted": list(one.refuted),
        "confirmed": one.confirmed,
        "not_possible": one.not_possible,
    }


# The last self-test, as `rpl doctor` and the provenance of documents name it; it changes no figure.
#
# And the contract of ``selftest.json``, whose model is imported where somebody looks at it.

_WHAT_TO_DO = "`rpl selftest` says which page rests on each; send its archive to the project"


class SelftestContract(DocumentContract):
    name = "selftest"
    summary = "a self-test of a machine"

    def model(self) -> type[SelftestDocument]:
        from rpl_selftest.contract import SelftestDocument

        return SelftestDocument

    def found_in(self, directory: Path) -> str:
        return f"see it with `rpl selftest --show {directory / 'selftest.tar.gz'}`"


class SelftestCheck(DoctorCheck):
    name = "selftest"
    summary = "what the last self-test of this machine refuted"

    def check(self) -> DoctorReport:
        kept = read_kept().values()
        refuted = [result for result in kept if result.refuted]
        # What a stand-in or an emulator refutes is told, and breaks nothing here.
        broken = any(result.origin == "measured" for result in refuted)
        told = "; ".join(result.line for result in refuted or kept)
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
            kept = read_kept().get(context.device.name)
        except BadDataError as error:
            unread = Diagnostic("selftest.unreadable", error.fact, cause=error.cause, remedy=error.next_step)
            return AnalysisOutcome({}, (unread,))
        if kept is None or kept.origin != context.recording.origin.value:
            return AnalysisOutcome({})
        return AnalysisOutcome({}, (_refuted(kept),) if kept.refuted else (), (kept.line,))


def _refuted(kept: KeptResult) -> Diagnostic:
    return Diagnostic("selftest.refuted", kept.line, remedy=_WHAT_TO_DO, count=len(kept.refuted))
