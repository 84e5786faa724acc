"""What ``rpl what-if --json`` prints: the application as recorded, and as predicted with faster kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rpl_analysis.contracts.record import SchemaVersion, document_of, record


@record
class FasterKernelPart:
    """``factor`` is null where the kernel was taken for free."""

    name: str
    factor: float | None


@record
class WhatIfAnswerPart:
    """``application_speedup`` is recorded / predicted, null if no time is left.

    ``application_gain_at_most_ns`` is the upper end where the order of streams is unknown, and the others the
    lower one; null where it is known.
    """

    changes: tuple[FasterKernelPart, ...]
    application_ns: int
    application_gain_ns: int
    application_speedup: float | None
    application_gain_at_most_ns: int | None = None


@record(kw_only=True)
class WhatIf:
    """``alone`` holds one answer per kernel where several were asked, ``together`` all of them at once.

    Predictions are modelled; ``origin`` is that of the recording. ``machine`` has the longest path among
    ``machines``; ``run`` counts timing runs from zero. With ``at_most`` gains are upper ends: of a single
    stream without API calls nothing tells which gaps the host needed for itself.
    """

    schema_version: SchemaVersion
    origin: Literal["measured", "modelled", "synthetic"]
    run: int
    range: str | None = None  # --range: only what these ranges launched; null: all work
    machine: str
    machines: int
    recorded_ns: int
    alone: tuple[WhatIfAnswerPart, ...] = ()
    together: WhatIfAnswerPart
    at_most: bool = False


if TYPE_CHECKING:
    from rpl_core.contracts.common import Part

    class WhatIfDocument(WhatIf, Part):
        """The answer as a document."""


def __getattr__(name: str) -> Any:
    if name == "WhatIfDocument":
        return document_of(WhatIf, name, in_envelope=False)
    raise AttributeError(name)
