"""Questions and answers of a what-if; times are int64 nanoseconds of the whole application."""

from __future__ import annotations

import attrs

__all__ = ["Answer", "FasterKernel", "Prediction"]


@attrs.frozen
class FasterKernel:
    """``name`` as displayed (or a copy direction) runs ``factor`` times as fast; infinity makes it free."""

    name: str
    factor: float


@attrs.frozen
class Answer:
    """The application under ``changes``; ``speedup`` is recorded / predicted, ``None`` if nothing is left."""

    changes: tuple[FasterKernel, ...]
    application_ns: int
    gain_ns: int
    speedup: float | None


@attrs.frozen
class Prediction:
    """``recorded_ns`` is the makespan of the machine with the longest path, as the documents report it.

    ``together`` answers all changes at once; it is the only answer where one was asked.
    """

    recorded_ns: int
    machine: str
    machines: int
    alone: tuple[Answer, ...]
    together: Answer
