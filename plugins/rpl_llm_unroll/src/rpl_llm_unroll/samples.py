"""Several kernels of a model for one candidate (``--samples``): each is tried out, the fastest is handed in.

What is tried out proves nothing (see ``TriedOut``): the fastest passes all gates and is measured like every
other candidate. The others are not lost: later prompts tell the model what they took or why they were
refused. ``samples.jsonl`` of the session keeps that, so that an interrupted round is not paid for twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs
from pydantic import BaseModel, ConfigDict, PositiveFloat, ValidationError

from rpl_core.errors import RplError
from rpl_core.files import read_regular
from rpl_core.text import counted
from rpl_optimize.interfaces.proposer import Attempt, ProposalRequest
from rpl_optimize.interfaces.transformation import EditCandidate, GuardVerdict

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES_FILE = "samples.jsonl"
_MOST_BYTES = 16 << 20
#: The first run of a program is often a cold one; a candidate is measured with many more (chosen).
RUNS = 2
_VERDICT = "tried out"


class SampleLine(BaseModel):
    """One sample of the candidate with this number of earlier ones, as a line of ``samples.jsonl``."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    kernel: str
    earlier: int
    summary: str
    value: PositiveFloat | None
    unit: str
    problem: str | None

    def attempt(self) -> Attempt:
        if self.value is None:
            return Attempt(self.summary, _VERDICT, self.problem or "no time")
        told = f"{self.value:.6g} {self.unit} in {counted(RUNS, 'run')}, not measured against the original"
        return Attempt(self.summary, _VERDICT, told)


@attrs.define(eq=False)
class Samples:
    """Of one session. Lines that can't be read are samples that are tried out again."""

    path: Path | None
    lines: list[SampleLine] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.lines = []
        if self.path is None or not self.path.is_file():
            return
        try:
            text = read_regular(self.path, _MOST_BYTES, links=False).decode("utf-8", "replace")
        except (OSError, RplError):
            return
        for line in text.splitlines():
            try:
                self.lines.append(SampleLine.model_validate_json(line))
            except ValidationError:
                continue

    def fastest(
        self,
        request: ProposalRequest,
        most: int,
        ask: Callable[[ProposalRequest], EditCandidate | None],
        repair: Callable[[ProposalRequest, EditCandidate, str], EditCandidate | None],
    ) -> EditCandidate | None:
        """The fastest of up to ``most`` candidates that ``ask`` gives, each after repairs of what failed.

        One without edits and with the last reason where none could be timed; ``None`` where ``ask`` gives
        nothing at all. ``request`` needs a ``try_out``.
        """
        earlier, kernel = len(request.attempts), str(request.source.kernel)
        _tell_plan(request, most)
        attempts = list(request.attempts)
        attempts += [one.attempt() for one in self.lines if one.kernel == kernel and one.earlier < earlier]

        def told() -> ProposalRequest:
            return attrs.evolve(request, attempts=tuple(attempts))

        timed: list[tuple[float, EditCandidate]] = []
        last: EditCandidate | None = None
        for _ in range(most):
            candidate = ask(told())
            while candidate is not None and candidate.edits:
                sample, ended = self._try_out(request, candidate, earlier)
                attempts.append(sample.attempt())
                if sample.value is not None:
                    timed.append((sample.value, candidate))
                    break
                last = _failed(candidate, str(sample.problem))
                if ended:
                    return _best(request, timed, last)
                candidate = repair(told(), candidate, str(sample.problem)) or last
            else:
                if candidate is None:
                    break
                if candidate is not last:  # a reply that came to nothing, before anything could be built
                    last, reasons = candidate, "; ".join(guard.reason for guard in candidate.guards)
                    attempts.append(Attempt(candidate.summary, "refused", reasons))
                if any(guard.guard == "budget" for guard in candidate.guards):
                    break
        return _best(request, timed, last)

    def _try_out(
        self, request: ProposalRequest, candidate: EditCandidate, earlier: int
    ) -> tuple[SampleLine, bool]:
        """What an interrupted part of this round saw, else by building and running it; and if time is up."""
        kernel = str(request.source.kernel)
        for line in self.lines:
            if (line.kernel, line.earlier, line.summary) == (kernel, earlier, candidate.summary):
                return line, False
        assert request.try_out is not None
        outcome = request.try_out(candidate, RUNS)
        line = SampleLine(
            kernel=kernel,
            earlier=earlier,
            summary=candidate.summary,
            value=outcome.value,
            unit=outcome.unit,
            problem=outcome.problem,
        )
        if not outcome.ended:
            self.lines.append(line)
            if self.path is not None:
                with self.path.open("a", encoding="utf-8") as stream:
                    stream.write(line.model_dump_json() + "\n")
        return line, outcome.ended


def _failed(candidate: EditCandidate, problem: str) -> EditCandidate:
    guard = GuardVerdict("samples", passed=False, reason=problem)
    return attrs.evolve(candidate, edits=(), guards=(guard,))


def _best(
    request: ProposalRequest, timed: list[tuple[float, EditCandidate]], last: EditCandidate | None
) -> EditCandidate | None:
    if not timed:
        return last
    _, best = min(timed, key=lambda pair: pair[0])  # of equal ones the first
    ran = counted(len(timed), "kernel")
    request.note(f"llm: {ran} ran with equal results; the fastest is measured: {best.summary}")
    return best


def _tell_plan(request: ProposalRequest, most: int) -> None:
    cost = request.told_cost(RUNS * most)
    request.note(
        f"llm: up to {counted(most, 'kernel')} for this candidate, each built, checked and run "
        f"{counted(RUNS, 'time')}{cost}; the fastest is measured"
    )
