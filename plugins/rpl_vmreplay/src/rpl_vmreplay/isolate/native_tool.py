"""Where the native capture tool is: in the distribution rpl-native, or in a folder that was built by hand."""

from __future__ import annotations

from pathlib import Path

from rpl_core.config.values import text
from rpl_core.errors import MissingError
from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus
from rpl_core.interfaces.options import CommandOption

LIBRARY = "librpl_isolate.so"
#: In a build folder, in the part of it for the tool, and where the tool itself lies.
_PLACES = ("native/isolate", "isolate", ".")
_REMEDY = (
    "pip install rpl-native, or in a checkout of rpl: cmake -S . -B build && cmake --build build -j, "
    "then --native-folder build"
)

NATIVE_FOLDER: CommandOption[Path | None] = CommandOption(
    name="native-folder",
    commands=("isolate",),
    parse=lambda value: Path(text(value)),
    default=None,
    help="Build folder of rpl's native part, instead of the installed rpl-native.",
    metavar="DIR",
    setting=True,
)


def find_library(folder: Path | None) -> Path:
    """The tool, as an absolute path. Raises MissingError with the remedy."""
    if folder is not None:
        for place in _PLACES:
            if (found := folder / place / LIBRARY).is_file():
                return found.resolve()
        raise MissingError(f"{LIBRARY} is not in {folder}", next_step=_REMEDY)
    try:
        from rpl_native import path_of
    except ModuleNotFoundError:
        raise MissingError(
            "the capture tool is not installed: rpl-native is absent", next_step=_REMEDY
        ) from None
    found = path_of(LIBRARY)
    if not found.is_file():
        raise MissingError(f"the installed rpl-native has no {LIBRARY}", next_step=_REMEDY)
    return found


class CaptureToolCheck(DoctorCheck):
    """Whether launches can be captured here."""

    name = "capture-tool"
    summary = "the native tool that captures one launch"

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def check(self) -> DoctorReport:
        try:
            return DoctorReport(DoctorStatus.OK, f"{find_library(self._folder)} is there")
        except MissingError as error:
            return DoctorReport(DoctorStatus.MISSING, error.fact, "`rpl isolate`", error.next_step)
