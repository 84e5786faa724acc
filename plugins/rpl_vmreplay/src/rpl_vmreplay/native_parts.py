"""Where the native parts are: in the distribution rpl-native, or in a folder that was built by hand."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rpl_core.config import Setting, text
from rpl_core.errors import MissingError, UsageError
from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus
from rpl_core.interfaces.options import CommandOption, SettingKind
from rpl_core.values import frozen

_REMEDY = (
    "pip install rpl-native, or in a checkout of rpl: cmake -S . -B build && cmake --build build -j, then {}"
)


@frozen
class NativePart:
    """A library or program. ``folder`` is where a build puts it; ``command`` needs it."""

    file: str
    folder: str
    what: str
    command: str
    check: str
    named_by: str = "--native-folder build"  # how a build's folder is named


CAPTURE_TOOL = NativePart("librpl_isolate.so", "isolate", "the capture tool", "`rpl isolate`", "capture-tool")
REPLAYER = NativePart("rpl-replay", "replay", "the replayer", "`rpl replay`", "replayer")


def _words(value: object) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text(value)))
    except ValueError as error:
        raise UsageError(f"these are no words as a shell splits them: {error}") from None


NATIVE_FOLDER: CommandOption[Path | None] = CommandOption(
    name="native-folder",
    commands=("isolate", "full-vm", "reserve-check"),
    parse=lambda value: Path(text(value)),
    default=None,
    help="Build folder of rpl's native part, instead of the installed rpl-native.",
    metavar="DIR",
    setting=True,
    kind=SettingKind.PROGRAM,
)
REPLAY_LAUNCHER: CommandOption[tuple[str, ...]] = CommandOption(
    name="replay-launcher",
    commands=("full-vm", "reserve-check"),
    parse=_words,
    default=(),
    help="Words before the replayer's own command, such as 'numactl --cpunodebind 0'.",
    metavar="WORDS",
    setting=True,
    kind=SettingKind.PROGRAM,
)


def configured_folder(config: Mapping[str, Any]) -> Path | None:
    """The build folder as the commands see it without their option: the variable, else the settings file."""
    named = os.environ.get(Setting.of(NATIVE_FOLDER).variable) or config.get(NATIVE_FOLDER.name)
    return None if named is None else NATIVE_FOLDER.parse(named)


def find_part(part: NativePart, folder: Path | None) -> Path:
    """The part, as an absolute path. Raises MissingError with the remedy."""
    remedy = _REMEDY.format(part.named_by)
    if folder is not None:
        for place in (f"native/{part.folder}", part.folder, "."):
            if (part_path := folder / place / part.file).is_file():
                return part_path.resolve()
        raise MissingError(f"{part.file} is not in {folder}", next_step=remedy)
    try:
        from rpl_native import path_of
    except ModuleNotFoundError:
        raise MissingError(f"{part.what} is not installed: rpl-native is absent", next_step=remedy) from None
    part_path = path_of(part.file)
    if not part_path.is_file():
        raise MissingError(f"the installed rpl-native has no {part.file}", next_step=remedy)
    return part_path


class NativePartCheck(DoctorCheck):
    """Whether launches can be captured, or run again, here."""

    def __init__(self, part: NativePart, folder: Path | None) -> None:
        self.name, self.summary = part.check, f"{part.what}, which {part.command} runs"
        self._part, self._folder = part, folder

    def check(self) -> DoctorReport:
        try:
            return DoctorReport(DoctorStatus.OK, f"{find_part(self._part, self._folder)} is there")
        except MissingError as error:
            return DoctorReport(DoctorStatus.MISSING, error.fact, self._part.command, error.next_step)
