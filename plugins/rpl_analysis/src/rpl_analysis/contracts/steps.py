"""Next steps in ``analysis.json``, declared once: values of the advice, written as they are."""

from __future__ import annotations

from typing import Annotated, Literal

from rpl_analysis.contracts.record import Limited, record
from rpl_core.model.metric import Exactness

#: One of the frozen identifiers, or one of a plugin ("myplugin:label").
LabelName = Annotated[
    str,
    Limited(
        pattern="^(memory_bandwidth_bound|latency_bound|under_occupied|divergence_limited"
        "|compute_throughput_limited|unclassified|[a-z0-9][a-z0-9_-]*:[a-z0-9_]+)$"
    ),
]


@record
class ConfirmationPart:
    """A quantity that tells whether a step is right, as far as it is known, and the counters that give it."""

    quantity: str
    value: float | None
    unit: str | None
    exactness: Exactness | None
    counters: tuple[str, ...]
    upper: float | None = None  # of an interval


@record
class NextStepPart:
    """What to do next. ``{command}`` in ``command`` stands for the user's own."""

    advice: str
    text: str
    confirm: tuple[ConfirmationPart, ...]
    command: str | None
    source: str


@record
class PriorityPart:
    """What to look at first: ``gain_ns`` is what the run saves if ``subject`` takes half its time.

    Where the order of streams is unknown it is the lower end, and ``gain_at_most_ns`` the upper one. An entry
    without ``share`` comes first: it names the recording that closes such ranges, and its upper end is the
    width of the widest.
    """

    subject: str
    kind: Literal["kernel", "application"]
    label: LabelName | None
    gain_ns: int
    share: float | None  # gain_ns of the makespan
    steps: tuple[NextStepPart, ...]
    gain_at_most_ns: int | None = None
    share_at_most: float | None = None  # gain_at_most_ns of the makespan
