"""What a plugin can contribute to the analyses of rpl-analysis, as data."""

from __future__ import annotations

import re
from enum import Enum

import attrs

from rpl_core.values import frozen

__all__ = ["CollectiveRule", "CollectiveWait"]


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
