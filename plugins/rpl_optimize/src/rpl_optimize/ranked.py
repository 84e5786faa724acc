"""The proposer ``ranked``: candidates of all transformations and proposers, those that may gain most first.

The order decides only what is tried first. Whether a candidate helps is for the measurement to say.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import attrs

from rpl_core.errors import InterruptedRunError, PluginError, RplError
from rpl_core.model.value_checks import require_value
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.text import counted
from rpl_optimize.interfaces.proposer import (
    InstalledProposer,
    InstalledTransformation,
    ProposalRequest,
    Proposer,
)
from rpl_optimize.interfaces.transformation import EditCandidate, Evidence, Screening
from rpl_optimize.transform import OfferedCandidate, Offers, ask, candidate_problem, collect_offers

#: Of a kernel with more refused candidates the rest is counted; `rpl transform` lists them all.
_MOST_REFUSALS = 5


#: With its rank: a transformation's candidate, or what a proposer that joins made.
_Entry = tuple[tuple[object, ...], "OfferedCandidate | EditCandidate"]


def _candidate_of(entry: OfferedCandidate | EditCandidate) -> EditCandidate:
    return entry if isinstance(entry, EditCandidate) else entry.candidate


class RankedProposer(Proposer):
    """Asks ``transformations`` (default: all that are installed, and the proposers that join).

    One that fails costs only its own candidates, and the user is told.
    """

    name = "ranked"
    summary = "Try the candidates of all transformations, those that may gain most first."
    joins = False

    def __init__(self, transformations: tuple[InstalledTransformation, ...] | None = None) -> None:
        self._transformations = transformations
        self.asks_others = transformations is None
        self._told: set[tuple[Path | None, str]] = set()
        self._screenings: dict[tuple[int, str], Screening] = {}
        #: Who proposed what is under way, by the candidate's id.
        self._joined: dict[str, InstalledProposer] = {}

    def propose(self, request: ProposalRequest) -> EditCandidate | None:
        """The next one; if there is none, the user is told what stands against the rest."""
        offers = self._offers(request)
        refused = [offered.candidate for offered in offers.candidates if not offered.candidate.allowed]
        for candidate in self._plan(offers, request):
            if candidate.allowed:
                return candidate
            refused.append(candidate)
        self._tell(request, *self._nothing_left(request, refused))
        return None

    def repair(self, request: ProposalRequest, failed: EditCandidate, problem: str) -> EditCandidate | None:
        """Another version by the proposer that made it, if one did."""
        one = self._joined.get(failed.id)
        if one is None:
            return None
        answer = self._ask_proposer(one, request, lambda: one.proposer.repair(request, failed, problem))
        if answer is not None:
            self._joined[answer.id] = one
        return answer

    def _asked(self, request: ProposalRequest) -> tuple[InstalledTransformation, ...]:
        return request.transformations if self._transformations is None else self._transformations

    def _offers(self, request: ProposalRequest) -> Offers:
        offers = collect_offers(request.source, self._asked(request))
        for failure in offers.failures:
            self._tell(request, f"warning: {failure.fact}; it proposes nothing")
        wanted = {None, request.source.kernel} if request.source.kernel is not None else None
        kept = (c for c in offers.candidates if wanted is None or c.candidate.kernel in wanted)
        return attrs.evolve(offers, candidates=tuple(kept))

    def _plan(self, offers: Offers, request: ProposalRequest) -> Iterator[EditCandidate]:
        """What the source guards allow and was not tried, in order, with the verdicts of its screening.

        Transformations take turns, the one that may gain most first. Of candidates that change one thing in
        different ways the first that screening finds no fault with takes the turn, and the others come behind
        all turns. What costs more registers, LDS or waves comes last.
        """
        tried = {attempt.summary for attempt in request.attempts}
        places: dict[str, dict[str, list[_Entry]]] = {}
        for rank, entry in sorted(self._entries(offers, request), key=lambda ranked: ranked[0]):
            candidate = _candidate_of(entry)
            key = candidate.alternatives or f"candidate {candidate.id}"
            places.setdefault(self._name_of(entry), {}).setdefault(key, []).append((rank, entry))
        self._tell_plan(request, places)
        turns: list[tuple[int, tuple[object, ...], list[_Entry]]] = []
        for own in places.values():
            for number, members in enumerate(own.values()):
                left = [member for member in members if _candidate_of(member[1]).summary not in tried]
                if len(left) == len(members):
                    turns.append((number, members[0][0], members))
                else:  # one of them had its turn
                    turns += [(len(own) + at, one[0], [one]) for at, one in enumerate(left)]
        waiting = deque(members for _, _, members in sorted(turns, key=lambda turn: turn[:2]))
        costly: list[EditCandidate] = []
        while waiting:
            members = waiting.popleft()
            for at, (_, entry) in enumerate(members):
                if not _candidate_of(entry).allowed and not isinstance(entry, EditCandidate):
                    continue
                screened = entry if isinstance(entry, EditCandidate) else self._screened(entry, request)
                if screened.allowed and any(guard.asks for guard in screened.guards):
                    costly.append(screened)
                    continue
                yield screened
                if screened.allowed:
                    waiting += [[other] for other in members[at + 1 :]]
                    break
        yield from costly

    def _name_of(self, entry: OfferedCandidate | EditCandidate) -> str:
        """Of the transformation, or of the proposer that joins."""
        if isinstance(entry, EditCandidate):
            return self._joined[entry.id].proposer.name
        return entry.transformation

    def _tell_plan(self, request: ProposalRequest, places: dict[str, dict[str, list[_Entry]]]) -> None:
        """Once per kernel, before its first candidate: who takes turns, and what each may gain."""
        key = (request.directory, f"plan for {request.source.kernel}")
        offered = {name: [one for group in own.values() for one in group] for name, own in places.items()}
        allowed = {
            name: [_candidate_of(entry) for _, entry in entries if _candidate_of(entry).allowed]
            for name, entries in offered.items()
        }
        if request.attempts or key in self._told or not any(allowed.values()):
            return
        self._told.add(key)
        request.note(f"plan for {request.source.kernel or 'the file'}, in turns:")
        for name, candidates in allowed.items():
            if candidates:
                count = len({candidate.alternatives or candidate.id for candidate in candidates})
                most = max(
                    (candidate.evidence or Evidence()).expected_gain or (0.0, 0.0) for candidate in candidates
                )[1]
                gain = f"may gain up to {most:.1%} of the time" if most else "no document says what it gains"
                ways = "" if count == len(candidates) else f" ({counted(len(candidates), 'way', 'ways')})"
                request.note(f"  {name}: {counted(count, 'place', 'places')}{ways}; {gain}")

    def _entries(
        self, offers: Offers, request: ProposalRequest
    ) -> Iterator[tuple[tuple[object, ...], OfferedCandidate | EditCandidate]]:
        """Each with its rank; those of proposers alone."""
        for offered in self._ranked(offers, request):
            if offered.transformation in request.spent:
                continue
            yield _rank(offered.candidate, offered.transformation), offered
        for one in request.proposers if self._transformations is None else ():
            proposed = self._ask_proposer(one, request, partial(one.proposer.propose, request))
            if proposed is not None:
                self._joined[proposed.id] = one
                yield _rank(proposed, one.proposer.name), proposed

    def _ask_proposer(
        self, one: InstalledProposer, request: ProposalRequest, call: Callable[[], EditCandidate | None]
    ) -> EditCandidate | None:
        """Its answer; one that fails is told and costs only its own."""
        try:
            with plugin_boundary(one.plugin, f"proposer {one.proposer.name}"):
                answer: object = call()
                if answer is None or (
                    isinstance(answer, EditCandidate) and candidate_problem(answer, request.source) is None
                ):
                    return answer
                raise TypeError(f"returned {answer!r:.80} where a candidate was expected")
        except InterruptedRunError:
            raise
        except RplError as error:
            self._tell(request, f"warning: {error.fact}; it proposes nothing")
        return None

    def _ranked(self, offers: Offers, request: ProposalRequest) -> list[OfferedCandidate]:
        candidates: list[OfferedCandidate] = []
        for one in self._asked(request):
            own = tuple(offered.candidate for offered in offers.candidates if offered.by == one)
            answer = ask(one, "evidence", partial(_evidence, one, request, own)) if own else {}
            if isinstance(answer, PluginError):
                self._tell(request, f"warning: {answer.fact}; its candidates are tried last")
                answer = {}
            given = (attrs.evolve(candidate, evidence=answer.get(candidate.id)) for candidate in own)
            candidates += [OfferedCandidate(one, candidate) for candidate in given]
        return candidates

    def _screened(self, offered: OfferedCandidate, request: ProposalRequest) -> EditCandidate:
        """Once per version of the source: what waits for its turn is met again before every candidate."""
        candidate = offered.candidate
        key = (hash(request.source.text), offered.id)
        if key not in self._screenings:
            self._screenings[key] = self._screen(offered, request)
        answer = self._screenings[key]
        return attrs.evolve(candidate, guards=(*candidate.guards, *answer.verdicts))

    def _screen(self, offered: OfferedCandidate, request: ProposalRequest) -> Screening:
        answer = ask(offered.by, "screening", partial(_screening, offered, request))
        if isinstance(answer, PluginError):
            answer = Screening(unavailable=answer.fact)
        if answer.unavailable is not None:
            who = f"candidates of {offered.transformation}"
            self._tell(request, f"{self.name}: {who} are not screened: {answer.unavailable}")
        return answer

    def _tell(self, request: ProposalRequest, *lines: str) -> None:
        """Once per session: a kernel with nothing left is asked about again before every candidate."""
        if (request.directory, "\n".join(lines)) not in self._told:
            self._told.add((request.directory, "\n".join(lines)))
            for line in lines:
                request.note(line)

    def _nothing_left(self, request: ProposalRequest, refused: Iterable[EditCandidate]) -> Iterator[str]:
        """Why there is nothing left for a kernel: one line per refused candidate."""
        name = request.source.kernel or "the file"
        lines = [_refusal(candidate) for candidate in refused]
        if not lines and not request.attempts:
            names = ", ".join(one.transformation.name for one in self._asked(request))
            yield f"{self.name}: nothing to change in {name} ({names or 'no transformation is installed'})"
            return
        left = "left " if request.attempts else ""
        yield f"{self.name}: nothing {left}to try for {name}" + (":" if lines else "")
        for line in lines[:_MOST_REFUSALS]:
            yield f"  {line}"
        if len(lines) > _MOST_REFUSALS:
            yield f"  and {len(lines) - _MOST_REFUSALS} more; `rpl transform` lists those of the source"


def _evidence(
    one: InstalledTransformation, request: ProposalRequest, own: tuple[EditCandidate, ...]
) -> Mapping[str, Evidence]:
    """The transformation's answer; ``TypeError`` or ``ValueError`` for what no ranking can rely on."""
    answer = one.transformation.evidence(request.source, own, request.documents)
    if not isinstance(answer, Mapping):
        raise TypeError(f"returned {type(answer).__name__} where a mapping was expected")
    for identity, evidence in answer.items():
        require_value(evidence, Evidence)
        least, most = (0.0, 0.0) if evidence.expected_gain is None else evidence.expected_gain
        if not 0 <= least <= most <= 1:
            raise ValueError(f"candidate {identity!r} is expected to gain {least} to {most}, not 0 to 1")
    return answer


def _screening(offered: OfferedCandidate, request: ProposalRequest) -> Screening:
    answer = offered.by.transformation.screen(request.source, offered.candidate, request.documents)
    return require_value(answer, Screening)


def _rank(candidate: EditCandidate, who: str) -> tuple[object, ...]:
    """Expected gain (its middle, then what is sure of it), allowed ones, name, own order, place."""
    evidence = candidate.evidence or Evidence()
    least, most = evidence.expected_gain or (0.0, 0.0)
    gain = (evidence.expected_gain is None, -(least + most) / 2, -least)
    place = (evidence.preference, candidate.line, candidate.id)
    return (*gain, not candidate.allowed, who, *place)


def _refusal(candidate: EditCandidate) -> str:
    guard = next(guard for guard in candidate.guards if not guard.passed)
    line = candidate.line if guard.line is None else guard.line
    return f"{candidate.summary}: guard {guard.guard}, line {line}: {guard.reason}"
