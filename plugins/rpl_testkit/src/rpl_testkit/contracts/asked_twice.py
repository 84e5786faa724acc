"""A method of a transformation called as the core calls it: without side effects, and twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_testkit.contracts.side_effects import no_side_effects
from rpl_testkit.contracts.violation import ContractViolation, demand

if TYPE_CHECKING:
    from collections.abc import Callable

    from rpl_optimize.interfaces.transformation import EditCandidate, KernelSource

    Method = Callable[[KernelSource], tuple[EditCandidate, ...]]


def asked_twice(
    method: Method, name: str, source: KernelSource, subject: str, answers: str
) -> tuple[EditCandidate, ...]:
    """The tuple that ``method`` gives both times; ``name`` and ``answers`` are for the messages."""
    try:
        method(source)  # imports what it needs before files are forbidden
        with no_side_effects(subject):
            first = method(source)
            second = method(source)
    except ContractViolation:
        raise
    except Exception as error:
        raise ContractViolation(f"{subject}: {name}() raised {error!r} for {source.text[:40]!r}") from error
    demand(isinstance(first, tuple), subject, f"{name}() returns a tuple")
    demand(first == second, subject, f"the same source gives two different {answers}")
    return first
