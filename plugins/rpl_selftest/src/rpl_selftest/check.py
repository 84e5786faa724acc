"""What a check is and how it can end, and all of them in turn.

The checks stand in ``checks``, what they use in ``bench``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Literal

import attrs
from pydantic import BaseModel, ConfigDict, Field

from rpl_core.errors import InterruptedRunError
from rpl_core.model.trace import TraceRole
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_selftest.bench import Bench, Recorded

# ``selftest.json``: what was checked on a machine, and what came of it.

_MOST_TEXT, _MOST_SHORT = 2000, 200
Text = Annotated[str, Field(max_length=_MOST_TEXT)]
Short = Annotated[str, Field(max_length=_MOST_SHORT)]
OutcomeName = Literal["confirmed", "refuted", "not possible"]
OriginName = Literal["measured", "modelled", "synthetic"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LinePart(_Strict):
    """One check. ``found`` is the reason where it was not possible."""

    check: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]
    outcome: OutcomeName
    runs: Text
    expected: Text
    found: Text
    document: Short
    essential: bool
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    figures: dict[Short, Annotated[float, Field(allow_inf_nan=False)] | None] = Field(default_factory=dict)


class SelftestDocument(_Strict):
    """``origin`` is that of the times; only ``measured`` tells of hardware. Null: nothing was recorded."""

    schema_version: Annotated[str, Field(pattern=r"^1\.[0-9]+$")] = "1.0"
    rpl_version: Short
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    mode: Literal["quick", "full"]
    origin: OriginName | None
    device: Short | None
    product: Short | None
    profiler: Short | None
    verdict: Literal["confirmed", "refuted", "no verdict"]
    confirmed: Annotated[int, Field(ge=0)]
    refuted: Annotated[int, Field(ge=0)]
    not_possible: Annotated[int, Field(ge=0)]
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    lines: Annotated[tuple[LinePart, ...], Field(max_length=200)]

    @property
    def label(self) -> str:
        """What stands behind an outcome wherever it is shown: nothing but a measured one stands alone."""
        return "" if self.origin == "measured" else f" ({self.origin or 'nothing recorded'})"

    @property
    def about(self) -> str:
        """What the outcomes say something of, in words that no reader can take for more."""
        if self.origin == "measured":
            return "measured on this machine's GPU"
        if self.origin is None:
            return "nothing was recorded: no outcome says anything of a GPU"
        return f"{self.origin}: no outcome says anything of a GPU"


class Outcome(str, Enum):
    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    NOT_POSSIBLE = "not possible"


class NotPossibleError(Exception):
    """A check can't be made here: one line that says why."""


@frozen
class Finding:
    """``found`` says what was seen, or why nothing could be. ``figures`` are the numbers behind it."""

    outcome: Outcome
    found: str
    figures: Mapping[str, float | None] = attrs.field(factory=dict)


@frozen
class Check:
    """One line of the self-test.

    ``runs`` says what is executed, ``expectation`` what must come of it, with its tolerance, and ``document``
    which page of rpl is wrong where it does not. An ``essential`` check that is not possible leaves the whole
    without a verdict. ``only_full`` ones take minutes.
    """

    name: str
    runs: str
    expectation: str
    document: str
    find: Callable[[Bench], Finding]
    essential: bool = True
    only_full: bool = False


def judged(holds: bool, found: str, **figures: float | None) -> Finding:
    return Finding(Outcome.CONFIRMED if holds else Outcome.REFUTED, found, figures)


# All checks in turn, each within its boundary, and the document that comes of them.


def run_checks(checks: Iterable[Check], bench: Bench, tell: Callable[[str], None]) -> tuple[LinePart, ...]:
    """A line for each check of this mode, with what identifies this machine taken out of its text."""
    lines = []
    for check in checks:
        if check.only_full and not bench.full:
            continue
        tell(check.name)
        begin = time.monotonic()
        finding = _finding_of(check, bench)
        lines.append(
            LinePart(
                check=check.name,
                outcome=finding.outcome.value,
                runs=check.runs,
                expected=check.expectation,
                found=bench.scrubbed(finding.found)[:_MOST_TEXT],
                document=check.document,
                essential=check.essential,
                seconds=round(time.monotonic() - begin, 3),
                figures=dict(finding.figures),
            )
        )
    return tuple(lines)


def _finding_of(check: Check, bench: Bench) -> Finding:
    try:
        return check.find(bench)
    except NotPossibleError as error:
        return Finding(Outcome.NOT_POSSIBLE, str(error))
    except InterruptedRunError:
        raise
    # The boundary of a check: what rpl printed may lack what the check reads.
    except Exception as error:  # noqa: BLE001 - the others go on
        return Finding(Outcome.NOT_POSSIBLE, f"the check itself failed: {type(error).__name__}: {error}")


def document_of(lines: tuple[LinePart, ...], bench: Bench, seconds: float) -> SelftestDocument:
    from datetime import datetime, timezone

    from rpl_core import __version__

    count = {outcome: sum(line.outcome == outcome.value for line in lines) for outcome in Outcome}
    open_ones = any(line.essential and line.outcome == Outcome.NOT_POSSIBLE.value for line in lines)
    recorded: Recorded | None = bench.made("recording timing")
    gpu = next(iter(recorded.recording.gpu_agents), None) if recorded else None

    def short(text: str | None) -> str | None:
        return None if text is None else bench.scrubbed(text)[:_MOST_SHORT]

    return SelftestDocument(
        rpl_version=__version__,
        date=datetime.now(timezone.utc).date().isoformat(),
        mode="full" if bench.full else "quick",
        origin=recorded.recording.origin.value if recorded else None,
        device=short(recorded.profile["provenance"]["device"]) if recorded else None,
        product=short(gpu.product) if gpu else None,
        profiler=short(_profiler(recorded)) if recorded else None,
        verdict="refuted" if count[Outcome.REFUTED] else "no verdict" if open_ones else "confirmed",
        confirmed=count[Outcome.CONFIRMED],
        refuted=count[Outcome.REFUTED],
        not_possible=count[Outcome.NOT_POSSIBLE],
        seconds=round(seconds, 1),
        lines=lines,
    )


def _profiler(recorded: Recorded) -> str | None:
    traces = recorded.recording.traces
    return next((trace.source.format for trace in traces if trace.role is TraceRole.TIMING), None)
