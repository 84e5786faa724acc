"""Executors have tasks done in other processes: on this machine, on a cluster, or by no one at all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

import attrs

from rpl_core.values import frozen

if TYPE_CHECKING:
    from typing_extensions import Self


def _say_nothing(_line: str) -> None:
    return None


@frozen
class Task:
    """A call ``function(argument, place)`` that any process can make: text in, text out.

    ``function`` stands in a module, under its own name. ``place`` is where it must run; ``None``: anywhere.
    """

    number: int
    function: Callable[[str, str], str]
    argument: str = attrs.field(repr=False)
    place: str | None = None


@frozen
class Answer:
    """What came of a task, and where. ``text`` is what its function returned.

    With an ``error`` (one line) there is no text: ``exit_code`` is what the error means to a user, and with
    ``lost`` the place went away, or whoever took the task died, so that nothing is known of the task itself.
    """

    number: int
    place: str
    text: str = attrs.field(default="", repr=False)
    error: str | None = None
    exit_code: int = 0
    lost: bool = False


@frozen
class ExecutorRequest:
    """What the user said about where tasks run.

    ``devices`` are those of this machine, each of which gets a process of its own, told by the first of
    ``device_variables`` (of its environment); without devices there are ``jobs`` processes. ``address`` is
    that of a cluster; where ``resource`` is said, each of its tasks needs one of that, and each worker has
    one. ``options`` are settings from ``rpl.toml``.
    """

    devices: tuple[str, ...] = ()
    device_variables: tuple[str, ...] = ()
    jobs: int = 1
    address: str | None = None
    resource: str | None = None
    options: Mapping[str, str] = attrs.field(factory=dict)
    note: Callable[[str], None] = attrs.field(default=_say_nothing, eq=False, repr=False)


class Workers(ABC):
    """Open places where tasks run.

    A context manager: leaving it ends everything that it started.
    """

    @abstractmethod
    def places(self) -> tuple[str, ...]:
        """Where tasks can run now, by name. It may change while a cluster grows or shrinks."""

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Have ``task`` done, at ``task.place`` where it names one, else where there is room."""

    @abstractmethod
    def wait(self, timeout_s: float | None) -> tuple[Answer, ...]:
        """Answers that have come since; waits for the first one, at most ``timeout_s``.

        A task whose worker died is done again elsewhere. One that was meant for a lost place, or that loses
        its workers again and again, comes back ``lost``.
        """

    @abstractmethod
    def close(self) -> None:
        """End what is running; answers that have not come are lost."""

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
    """A way to have tasks done."""

    name: str
    summary: str

    @abstractmethod
    def open(self, request: ExecutorRequest) -> Workers:
        """Workers that are ready. Raises ``MissingError`` or ``UsageError`` where there can't be any."""
