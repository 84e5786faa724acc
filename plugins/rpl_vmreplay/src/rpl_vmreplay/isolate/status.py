"""What the capture tool reports while the program runs, one file for each process; see docs/REPLAY.md."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rpl_core.errors import BadDataError, MissingError
from rpl_core.files.bounded import read_regular

if TYPE_CHECKING:
    from pathlib import Path

#: Names of kernels that are read of one process; templates make them long.
_LARGEST_NAMES = 16 << 20
_LARGEST_STATUS = 1 << 20
_NEAREST = 3
_LEAST_LIKENESS = 0.3

State = Literal[
    "refused", "loaded", "capturing", "captured", "not_drained", "not_finished", "failed", "ended"
]
#: Of several processes the one that says most about the outcome, first.
_ORDER = (
    "captured", "capturing", "not_drained", "not_finished", "failed", "refused", "ended", "loaded",
)  # fmt: skip


class ProcessStatus(BaseModel):
    """``<pid>.json``."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    pid: Annotated[int, Field(ge=0)]
    state: State
    reason: str | None = None
    output: str | None = None
    matches: Annotated[int, Field(ge=0)] = 0
    launches: Annotated[int, Field(ge=0)] = 0
    #: Both of a capture that failed for want of space: 0 where nothing more is known.
    needed_bytes: Annotated[int, Field(ge=0)] | None = None
    free_bytes: Annotated[int, Field(ge=0)] | None = None


def read_statuses(folder: Path) -> tuple[ProcessStatus, ...]:
    """Every process that loaded the tool, the most telling one first."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            content = read_regular(path, _LARGEST_STATUS, links=False)
            found.append(ProcessStatus.model_validate_json(content))
        except (
            ValidationError,
            BadDataError,
            MissingError,
        ):  # the program can write there too; what isn't a status says nothing
            continue
    return tuple(sorted(found, key=lambda one: (_ORDER.index(one.state), -one.launches, one.pid)))


def launched_kernels(folder: Path) -> tuple[str, ...]:
    """Demangled names of all kernels that any process launched, each once."""
    names: dict[str, None] = {}
    for path in sorted(folder.glob("*.kernels")):
        with path.open("rb") as stream:
            text = stream.read(_LARGEST_NAMES).decode("utf-8", "replace")
        for line in text.splitlines():
            mangled, _, demangled = line.partition("\t")
            names[demangled or mangled] = None
    return tuple(names)


def nearest_names(expression: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Up to three of ``names`` that are most like what the expression asks for."""
    wanted = "".join(re.findall(r"\w+", expression)).lower()

    def likeness(name: str) -> float:
        return difflib.SequenceMatcher(None, wanted, _short(name).lower()).ratio()

    rated = sorted(((likeness(name), name) for name in names), key=lambda one: (-one[0], one[1]))
    return tuple(name for value, name in rated[:_NEAREST] if value >= _LEAST_LIKENESS)


def _short(name: str) -> str:
    """The name without its arguments, template arguments and namespaces."""
    return re.split(r"[(<]", name.removeprefix("void "), maxsplit=1)[0].rpartition("::")[2]
