"""Readers turn recorded files into traces; they are the only ones who know file formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from rpl_core.model.trace import Trace
from rpl_core.values import frozen


@frozen
class InputSet:
    """Files that belong together, as one reader recognised them.

    ``refusal`` says why a recognised input can't be read (another tool's format, an unsupported schema,
    a truncated file); such a set is reported and never read.
    """

    reader: str
    format: str
    paths: tuple[Path, ...]
    refusal: str | None = None
    next_step: str | None = None


class Reader(ABC):
    """Recognises and reads one family of formats.

    ``priority`` orders readers when several recognise a file: the highest wins.
    """

    name: str
    summary: str
    priority: int = 0

    @abstractmethod
    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        """Group those of ``files`` that this reader recognises by content and name.

        Looks at headers only (bounded reads), never raises for unknown content, and opens read-only.
        """

    def stands_alone(self, path: Path) -> bool:
        """Whether the file is a part by itself, whatever lies beside it; by default nobody knows.

        By its name and first bytes: thousands of ranks are told apart so, and claimed one by one, each by
        the worker that reads it.
        """
        del path
        return False

    def parts(self, inputs: InputSet) -> tuple[InputSet, ...]:
        """What of a claimed set can be read by itself, such as the file of each process; by default all.

        Ranks are read part by part, each by another worker; the parts hold the set's files, each once.
        """
        return (inputs,)

    @abstractmethod
    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        """Read one claimed set. Raises ``BadDataError`` naming the file, the place and what was found."""
