"""Renderers turn the documents of a run into something to look at; they compute nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from pydantic import BaseModel


@attrs.frozen
class RenderRequest:
    """The validated documents by name; ``path_first`` puts the critical path before everything else."""

    documents: Mapping[str, BaseModel]
    path_first: bool = False


class Renderer(ABC):
    """One output format, chosen by ``rpl report --format NAME``."""

    name: str
    summary: str
    suffix: str  # file suffix such as ".txt"

    @abstractmethod
    def render(self, request: RenderRequest) -> str:
        """The whole output as text. Names from recordings are data: escape them for the format."""
