"""Edits byte by byte, and the turns of drawn candidates by dealing them out one after the other."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_optimize import transform
from rpl_optimize.interfaces.proposer import Attempt, InstalledTransformation, ProposalRequest
from rpl_optimize.interfaces.transformation import (
    Edit,
    EditCandidate,
    Evidence,
    GuardVerdict,
    KernelSource,
    Screening,
    Transformation,
)
from rpl_optimize.ranked import RankedProposer
from rpl_optimize.transform import apply_edits, edits_problem, read_source

SOURCE = KernelSource("k.hip", b"0123456789" * 10, "k")


def test_edits_that_fit_change_their_bytes_and_no_other() -> None:
    """A byte belongs to one edit at most; an insertion stands before a byte, alone."""
    rng = random.Random(1)
    fitted = 0
    for _ in range(3000):
        text = bytes(range(65, 65 + rng.randint(0, 9)))
        edits = []
        for number in range(rng.randint(0, 3)):
            begin = rng.randint(-1, len(text) + 1)
            edits.append(Edit(begin, begin + rng.choice((-1, 0, 0, 1, 2, 3)), b"<%d>" % number))
        inside = all(0 <= one.begin <= one.end <= len(text) for one in edits)
        taken: dict[int, list[int]] = {}
        for number, one in enumerate(edits):
            for place in range(one.begin, max(one.end, one.begin + 1)):
                taken.setdefault(place, []).append(number)
        apart = all(len(owners) == 1 for owners in taken.values())
        problem = edits_problem(edits, len(text))
        assert (problem is None) == (inside and apart), (text, edits)
        if problem is not None:
            assert ("leaves the file" in problem) or ("overlap" in problem)
            assert inside or not apart or "leaves the file" in problem
            with pytest.raises(ValueError, match="edit"):
                apply_edits(text, edits)
            continue
        fitted += 1
        pieces = [b"%c" % byte for byte in text] + [b""]
        for one in edits:
            if one.begin == one.end:
                pieces[one.begin] = one.replacement + pieces[one.begin]
                continue
            pieces[one.begin : one.end] = [one.replacement] + [b""] * (one.end - one.begin - 1)
        assert apply_edits(text, edits) == b"".join(pieces), (text, edits)
    assert fitted > 500


class Draws(Transformation):
    """Candidates, evidence and screenings as they were drawn."""

    summary = "for tests"

    def __init__(self, name: str, drawn: list[Any]) -> None:
        self.name, self.drawn = name, drawn

    def propose(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        return tuple(
            EditCandidate(
                one.id,
                one.kernel,
                one.line,
                f"{self.name} {one.id}",
                (Edit(0, 0, f"{self.name}{one.id}".encode()),),
                () if one.allowed else (GuardVerdict("g", False, "no"),),
                alternatives=one.alternatives,
            )
            for one in self.drawn
        )

    def evidence(self, source: Any, candidates: Any, documents: Any) -> dict[str, Evidence]:
        by_id = {one.id: one for one in self.drawn}
        return {c.id: Evidence(by_id[c.id].gain, {}, preference=by_id[c.id].preference) for c in candidates}

    def screen(self, source: Any, candidate: EditCandidate, documents: Any) -> Screening:
        one = next(one for one in self.drawn if one.id == candidate.id)
        found = {
            "fine": GuardVerdict("screen", True, "fine"),
            "refused": GuardVerdict("screen", False, "spills"),
            "costly": GuardVerdict("screen", True, "fewer waves", asks=True),
        }
        return Screening((found[one.screened],))

    def invariance(self, source: Any, after: bytes) -> tuple[GuardVerdict, ...]:
        return ()


def _drawn(rng: random.Random) -> list[Any]:
    return [
        SimpleNamespace(
            id=f"c{number}",
            kernel=rng.choice(("k", "k", "k", None, "m")),
            line=rng.randint(1, 3),
            allowed=rng.random() < 0.85,
            alternatives=rng.choice((None, None, "x", "y")),
            gain=rng.choice((None, (0.0, 0.2), (0.1, 0.1), (0.0, 0.5), (0.2, 0.3))),
            preference=rng.randint(0, 2),
            screened=rng.choice(("fine", "fine", "refused", "costly")),
        )
        for number in range(rng.randint(0, 5))
    ]


def _rank(name: str, one: Any) -> tuple[Any, ...]:
    """The middle of the gain, then its sure part; what nothing is known of last."""
    least, most = one.gain or (0.0, 0.0)
    known = (one.gain is None, -(least + most) / 2, -least)
    return (*known, not one.allowed, name, one.preference, one.line, one.id)


def _first(offered: dict[str, list[Any]]) -> str | None:
    """Which candidate has the first turn, when none was tried: the first way of the best place."""
    ranked = sorted(
        ((_rank(name, one), name, one) for name, own in offered.items() for one in own),
        key=lambda entry: entry[0],
    )
    places: dict[tuple[str, str], list[Any]] = {}
    for rank, name, one in ranked:
        places.setdefault((name, one.alternatives or f"candidate {one.id}"), []).append((rank, name, one))
    number: dict[str, int] = {}
    turns = []
    for (name, _), ways in places.items():
        turns.append((number.setdefault(name, 0), ways[0][0], ways))
        number[name] += 1
    costly = []
    queue = [ways for _, _, ways in sorted(turns, key=lambda turn: turn[:2])]
    for ways in queue:
        for _, name, one in ways:
            if not one.allowed or one.screened == "refused":
                continue
            if one.screened == "costly":
                costly.append(f"{name} {one.id}")
                continue
            return f"{name} {one.id}"
    return costly[0] if costly else None


def test_the_first_turn_is_that_of_the_best_way_of_the_best_place() -> None:
    rng = random.Random(2)
    firsts = set()
    for _ in range(250):
        drawn = {name: _drawn(rng) for name in ("a", "b", "c")}
        spent = frozenset(name for name in drawn if rng.random() < 0.15)
        offered = tuple(InstalledTransformation(f"of {n}", Draws(n, own)) for n, own in drawn.items())
        asked = ProposalRequest(SOURCE, {}, (), transformations=offered, spent=spent)
        found = RankedProposer().propose(asked)
        own = {
            name: [one for one in ones if one.kernel in ("k", None)]
            for name, ones in drawn.items()
            if name not in spent
        }
        expected = _first(own)
        assert (None if found is None else found.summary) == expected, drawn
        firsts.add(expected is None)
    assert firsts == {True, False}


def test_everything_that_is_allowed_comes_once_and_what_costs_more_comes_last() -> None:
    rng = random.Random(3)
    for _ in range(40):
        drawn = {name: _drawn(rng) for name in ("a", "b")}
        offered = tuple(InstalledTransformation(f"of {n}", Draws(n, own)) for n, own in drawn.items())
        asked = ProposalRequest(SOURCE, {}, (), transformations=offered)
        proposer, tried = RankedProposer(), []
        while (candidate := proposer.propose(asked)) is not None:
            tried.append(candidate.summary)
            assert candidate.allowed
            asked = attrs.evolve(asked, attempts=(*asked.attempts, Attempt(tried[-1], "rejected", "slow")))
        may = {
            f"{name} {one.id}": one.screened
            for name, ones in drawn.items()
            for one in ones
            if one.allowed and one.kernel in ("k", None) and one.screened != "refused"
        }
        assert sorted(tried) == sorted(may)
        kinds = [may[summary] for summary in tried]
        assert kinds == sorted(kinds, key=lambda kind: kind == "costly")


def test_a_source_is_read_up_to_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transform, "MAX_SOURCE_BYTES", 4)
    path = tmp_path / "k.hip"
    for size in (0, 3, 4, 5, 9):
        path.write_bytes(b"x" * size)
        if size <= 4:
            assert read_source(path, "k") == KernelSource(str(path), b"x" * size, "k")
        else:
            with pytest.raises(BadDataError, match="larger than"):
                read_source(path, "k")
    with pytest.raises(MissingError, match="no source file"):
        read_source(tmp_path, None)


def test_candidates_are_found_by_the_name_of_their_transformation_and_their_own() -> None:
    one = SimpleNamespace(
        id="c", kernel="k", line=2, allowed=True, alternatives=None, gain=None, preference=0, screened="fine"
    )
    later, earlier = Draws("a", [one]), Draws("b", [SimpleNamespace(**{**vars(one), "line": 1})])
    offered = tuple(InstalledTransformation("p", t) for t in (later, earlier))
    offers = transform.collect_offers(SOURCE, offered)
    assert [found.id for found in offers.candidates] == ["b:c", "a:c"]
    assert offers.get("a:c").by is offered[0]
    with pytest.raises(UsageError, match="known: b:c, a:c"):
        offers.get("c")
    assert transform.collect_offers(attrs.evolve(SOURCE, path="k.f90"), offered).candidates == ()
    with pytest.raises(BadDataError, match=r"handles \.f90 files"):
        transform.require_transformations(attrs.evolve(SOURCE, path="k.f90"), offered)
    with pytest.raises(MissingError, match="offers transformations"):
        transform.require_transformations(SOURCE, ())
