"""What a plugin can contribute to the reports: exporters write a run in the format of another tool."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING

import attrs

from rpl_core.model.recording import Recording
from rpl_core.values import frozen

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rpl_core.model.device import Architecture


class ExportInput(Enum):
    """What an exporter is made from: the recording, or the documents of its analysis."""

    RECORDING = "recording"
    DOCUMENTS = "documents"


def _no_architecture(_name: str) -> Architecture | None:
    return None


@frozen(eq=False)
class ExportRequest:
    """``recording`` or ``documents`` is given, as the exporter's ``needs`` says.

    ``architecture`` gives what the installed plugins know of an instruction set, by its name.
    """

    recording: Recording | None = None
    documents: Mapping[str, BaseModel] = attrs.field(factory=dict)
    architecture: Callable[[str], Architecture | None] = _no_architecture


class Exporter(ABC):
    """One format, chosen by ``rpl export --format NAME``. ``binary`` output is not for a terminal."""

    name: str
    summary: str
    suffix: str
    needs: ExportInput = ExportInput.RECORDING
    binary: bool = False

    @abstractmethod
    def export(self, request: ExportRequest) -> bytes:
        """The whole file. Raises ``BadDataError`` where there is nothing to export."""
