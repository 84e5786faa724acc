"""What a plugin can contribute to the analyses of rpl-analysis, as data."""

from __future__ import annotations

import re
from enum import Enum

import attrs

from rpl_core.interfaces.rule import Condition
from rpl_core.values import frozen

__all__ = ["Advice", "AdviceState", "CollectiveRule", "CollectiveWait"]


class AdviceState(str, Enum):
    """What a recording lacks where no label could be given."""

    NO_DEVICE = "no_device"
    NO_COUNTERS = "no_counters"
    COUNTERS = "counters"  # there are some, and rules stayed open all the same


@frozen
class Advice:
    """What to do next about a label, or about time of the application that no kernel takes.

    It is given for kernels with one of ``labels``, if ``rules`` are named only where one of them holds, and
    if all ``conditions`` hold. With a ``state`` it is for kernels that lack that. The label "application"
    goes with a ``figure``: a share of the makespan, such as "host_idle", from 5 % on.

    ``confirm`` names quantities that would tell whether the step is right; ``confirm_unknown`` stands for
    those that no rule could be tested without. ``command`` is what to run, with ``{command}`` for the user's
    own; without it the counters of ``confirm`` are asked for. ``source`` can be opened by a reader.
    """

    id: str
    labels: tuple[str, ...]
    text: str
    source: str
    rules: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    confirm: tuple[str, ...] = ()
    confirm_unknown: bool = False
    command: str | None = None
    state: AdviceState | None = None
    figure: str | None = None


class CollectiveWait(str, Enum):
    """Who waits for whom in a collective operation."""

    ALL = "all"  # no rank gets past it before every rank has come
    UNKNOWN = "unknown"  # the name does not say what the kernel does


@frozen
class CollectiveRule:
    """Kernels whose name holds ``pattern`` communicate between GPUs.

    ``pattern`` is a regular expression, searched without regard to case in the name of the function: what
    stands before its template arguments and parameters. The first rule in plugin order that matches counts.
    ``source`` says where the name comes from.
    """

    id: str
    pattern: str = attrs.field()
    operation: str  # "all_reduce", "all_gather", ...; "unknown" where the name does not tell
    waits: CollectiveWait
    source: str

    @pattern.validator
    def _compiles(self, _attribute: object, value: str) -> None:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(
                f"the pattern {value!r} of {self.id!r} is no regular expression: {error}"
            ) from None
