"""The four documents of a run, written together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.contracts.analysis import AnalysisDocument
from rpl_core.contracts.dag import DagDocument
from rpl_core.contracts.profile import ProfileDocument
from rpl_core.contracts.roofline import RooflineDocument
from rpl_core.files.atomic import write_atomic
from rpl_core.process.storage import make_directory

if TYPE_CHECKING:
    from rpl_core.contracts.common import Document


@attrs.frozen(eq=False)
class Documents:
    profile: ProfileDocument
    roofline: RooflineDocument
    dag: DagDocument
    analysis: AnalysisDocument

    def by_name(self) -> Mapping[str, Document]:
        return {
            "profile": self.profile,
            "roofline": self.roofline,
            "dag": self.dag,
            "analysis": self.analysis,
        }

    def write(self, directory: Path) -> None:
        """Write all four as ``<name>.json``; equal documents give equal bytes."""
        make_directory(directory)
        for name, document in self.by_name().items():
            write_atomic(directory / f"{name}.json", to_json(document))


def to_json(document: Document) -> str:
    return document.model_dump_json(indent=2) + "\n"
