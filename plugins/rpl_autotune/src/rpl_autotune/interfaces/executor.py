"""Executors have configurations measured: on this machine, on a cluster, or in a recording."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

import attrs

from rpl_core.values import frozen

if TYPE_CHECKING:
    from typing_extensions import Self

    from rpl_autotune.interfaces.job import Job, Outcome
    from rpl_autotune.interfaces.space import SearchSpace


def _say_nothing(_line: str) -> None:
    return None


@frozen
class ExecutorRequest:
    """What the user said about where to measure.

    ``devices`` are the GPUs of this machine by number or UUID; ``address`` is that of a cluster;
    ``recording`` is a recorded space. ``options`` are settings from ``rpl.toml``.
    """

    devices: tuple[str, ...] = ()
    address: str | None = None
    recording: str | None = None
    space: SearchSpace | None = attrs.field(default=None, repr=False)
    options: Mapping[str, str] = attrs.field(factory=dict)
    note: Callable[[str], None] = attrs.field(default=_say_nothing, eq=False, repr=False)


class Workers(ABC):
    """Open places where jobs run, one job per device at a time.

    A context manager: leaving it ends everything that it started.
    """

    @abstractmethod
    def devices(self) -> tuple[str, ...]:
        """The devices that can take jobs now, by name. It may change while a cluster grows or shrinks."""

    @abstractmethod
    def submit(self, job: Job) -> None:
        """Have ``job`` measured, on ``job.device`` where it names one, else where there is room."""

    @abstractmethod
    def wait(self, timeout_s: float | None) -> tuple[Outcome, ...]:
        """Outcomes that have come since; waits for the first one, at most ``timeout_s``.

        A job whose worker was lost is measured again elsewhere; one that was meant for a lost device comes
        back with the state ``lost``.
        """

    @abstractmethod
    def close(self) -> None:
        """End what is running; outcomes that have not come are lost."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Executor(ABC):
    """A way to have configurations measured."""

    name: str
    summary: str

    @abstractmethod
    def open(self, request: ExecutorRequest) -> Workers:
        """Workers that are ready. Raises ``MissingError`` or ``UsageError`` where there can't be any."""
