"""Metrics compare candidates where nothing can be measured: by figures of a model, which accept nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import LineSink
    from rpl_core.interfaces.options import Options


@frozen
class MetricRequest:
    """One run of ``command``, the user's own with a built program in it. ``directory`` is new and its own.

    ``kernel`` is the name that recordings of the metric's device display.
    """

    command: tuple[str, ...]
    kernel: str
    directory: Path
    log: LineSink
    time_limit_s: float | None = None


@frozen
class MetricValue:
    """``value`` over all ``launches`` of the kernel in one run; less is better."""

    value: float
    launches: int


class Metric(ABC):
    """A figure of a model. ``devices`` are the only ones that it is for, and those can't measure anything.

    ``architecture`` is what programs for them are compiled for. ``formula`` says in one sentence what is
    added up, with its source.
    """

    name: str
    summary: str
    unit: str
    formula: str
    devices: tuple[str, ...]
    architecture: str

    @abstractmethod
    def command(self, command: tuple[str, ...], options: Options) -> tuple[str, ...]:
        """The words that run ``command`` on the metric's device; checks of results run programs so.

        ``options`` are the values of the command's options that plugins brought.
        Raises ``MissingError``.
        """

    @abstractmethod
    def value(self, request: MetricRequest) -> MetricValue:
        """Run the program once.

        Raises ``ApplicationError`` and ``TimeLimitError`` for what the program does wrong, ``BadDataError``
        where it does not launch the kernel, ``MissingError`` and ``InterruptedRunError``.
        """
