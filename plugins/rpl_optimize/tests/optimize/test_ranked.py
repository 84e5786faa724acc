"""The order among transformations, and what a broken one costs."""

from __future__ import annotations

import attrs
import pytest

from rpl_optimize.interfaces.proposer import (
    Attempt,
    InstalledProposer,
    InstalledTransformation,
    ProposalRequest,
    Proposer,
)
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
from rpl_optimize.transform import GUARD, judge_edit
from rpl_testkit.contracts import assert_proposer

SOURCE = KernelSource("k.hip", b"__global__ void k() {}\n", "k")


class Adds(Transformation):
    """Adds its own name as a comment; ``gains`` are what it expects of each of its candidates."""

    summary = "for tests"

    def __init__(self, name: str, *gains: tuple[float, float] | None) -> None:
        self.name, self._gains = name, gains or (None,)

    def propose(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        if source.kernel not in {None, "k"}:
            return ()
        return tuple(
            EditCandidate(
                f"{number}",
                "k",
                1,
                f"{self.name} {number}",
                (Edit(0, 0, f"// {self.name}{number}\n".encode()),),
            )
            for number in range(len(self._gains))
        )

    def evidence(self, source, candidates, documents):
        return {c.id: Evidence(self._gains[int(c.id)], {"one": 1}) for c in candidates}

    def invariance(self, source, after):
        return (GuardVerdict(f"only-{self.name}", self.name.encode() in after, "it looks for its name"),)


class Raises(Adds):
    """As it says, in the methods named."""

    def __init__(self, *methods: str) -> None:
        super().__init__("raising")
        for method in methods:
            setattr(self, method, self._fail)

    def _fail(self, *_arguments):
        raise ZeroDivisionError


def request(*transformations: Transformation, attempts=(), note=lambda line: None) -> ProposalRequest:
    offered = tuple(InstalledTransformation(f"of {t.name}", t) for t in transformations)
    return ProposalRequest(SOURCE, {}, attempts, note=note, transformations=offered)


def order(*transformations: Transformation) -> list[str]:
    asked = request(*transformations)
    tried: list[str] = []
    while (candidate := RankedProposer().propose(asked)) is not None:
        tried.append(candidate.summary)
        asked = attrs.evolve(asked, attempts=(*asked.attempts, Attempt(tried[-1], "rejected", "slower")))
    return tried


def test_the_most_to_gain_first_then_the_surest_then_by_name():
    assert order(Adds("b", (0.0, 0.2), None), Adds("a", (0.0, 0.1), (0.1, 0.1)), Adds("c", (0.0, 0.2))) == [
        "a 1",
        "b 0",
        "c 0",
        "a 0",
        "b 1",
    ]


def test_it_keeps_the_contract_and_says_what_its_order_rests_on():
    asked = request(Adds("a", (0.0, 0.1)))
    assert_proposer(RankedProposer(), asked)
    assert RankedProposer().propose(asked).evidence == Evidence((0.0, 0.1), {"one": 1})


@pytest.mark.parametrize("method", ["propose", "evidence", "screen"])
def test_one_that_raises_costs_only_itself(method):
    notes: list[str] = []
    asked = request(Raises(method), Adds("b", (0.0, 0.2)), note=notes.append)
    assert RankedProposer().propose(asked).summary == "b 0"
    tried = (Attempt("b 0", "rejected", "slower"),)
    rest = RankedProposer().propose(attrs.evolve(asked, attempts=tried))
    assert (rest is None) is (method == "propose")
    assert any("of raising" in line and "ZeroDivisionError" in line for line in notes), notes


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {"0": 0.5},
        {"0": Evidence((0.5, 0.1))},
        {"0": Evidence((0.0, float("nan")))},
        {"0": Evidence("ab")},
    ],
)
def test_evidence_that_is_none_is_named_and_its_candidates_come_last(answer):
    class Junk(Adds):
        def evidence(self, source, candidates, documents):
            return answer

    notes: list[str] = []
    asked = request(Junk("a"), Adds("b", (0.0, 0.0)), note=notes.append)
    assert RankedProposer().propose(asked).summary == "b 0"
    assert "of a" in notes[0]


def test_what_the_screening_refuses_is_passed_over_and_named():
    class Screened(Adds):
        def screen(self, source, candidate, documents):
            return Screening((GuardVerdict("compiles", False, "it does not"),))

    notes: list[str] = []
    assert RankedProposer().propose(request(Screened("a"), note=notes.append)) is None
    assert notes[-2:] == ["ranked: nothing to try for k:", "  a 0: guard compiles, line 1: it does not"]


def test_a_transformation_judges_its_own_edits_only():
    first, second = Adds("first"), Adds("second")
    offered = request(first, second).transformations
    (own,) = second.propose(SOURCE)
    judged = judge_edit(SOURCE, own, b"// second0\n", offered)
    assert [(v.guard, v.passed) for v in judged.verdicts] == [("only-second", True)]
    assert judged.owner.transformation == "second"
    free = attrs.evolve(own, edits=(Edit(0, 0, b"// mine"),))
    judged = judge_edit(SOURCE, free, b"// mine", offered)
    assert judged.verdicts == ()
    assert judged.owner is None


def test_a_proposer_cannot_leave_out_the_guards_of_an_edit():
    class Refuses(Adds):
        def propose(self, source):
            refusal = (GuardVerdict("safe", False, "it is not"),)
            return tuple(attrs.evolve(candidate, guards=refusal) for candidate in super().propose(source))

    stripped = attrs.evolve(Adds("a").propose(SOURCE)[0], guards=())
    judged = judge_edit(SOURCE, stripped, b"// a0\n", request(Refuses("a")).transformations)
    assert [v.guard for v in judged.verdicts if not v.passed] == ["safe"]


def test_a_broken_judge_refuses_its_own_edit_and_no_other():
    broken, sound = Raises("invariance"), Adds("sound")
    offered = request(broken, sound).transformations
    (own,) = broken.propose(SOURCE)
    judged = judge_edit(SOURCE, own, b"// raising0\n", offered)
    assert [(v.guard, v.passed) for v in judged.verdicts] == [(GUARD, False)]
    (other,) = sound.propose(SOURCE)
    assert judge_edit(SOURCE, other, b"// sound0\n", offered).failures == ()


class Says(Proposer):
    """Proposes one candidate that carries its own evidence."""

    summary = "for tests"

    def __init__(self, name, gain, answer=None):
        self.name = name
        made = EditCandidate(name, "k", 1, f"{name} says", (Edit(0, 0, b"// said"),), evidence=Evidence(gain))
        self.answer = made if answer is None else answer

    def propose(self, request):
        tried = {attempt.summary for attempt in request.attempts}
        return None if getattr(self.answer, "summary", None) in tried else self.answer

    def repair(self, request, failed, problem):
        return attrs.evolve(failed, id="repaired", summary=f"{self.name} repaired: {problem}")


def test_proposers_that_join_are_ranked_with_the_transformations():
    notes: list[str] = []
    offered = request(Adds("a", (0.0, 0.4)), note=notes.append)
    names = {"strong": (0.2, 0.5), "weak": (0.0, 0.1)}
    joining = [InstalledProposer(f"of {name}", Says(name, gain)) for name, gain in names.items()]
    junk = InstalledProposer("of junk", Says("junk", None, answer="a candidate"))
    offered = attrs.evolve(offered, proposers=(*joining, junk))
    proposer, found, tried = RankedProposer(), [], []
    while (candidate := proposer.propose(attrs.evolve(offered, attempts=tuple(tried)))) is not None:
        found.append(candidate.summary)
        tried.append(Attempt(candidate.summary, "rejected", "slower"))
    assert found[0] == "strong says"
    assert found[-1] == "weak says"
    assert len(found) > 2
    assert any("of junk" in note or "junk" in note for note in notes)
    assert "  strong: 1 place; may gain up to 50.0% of the time" in notes, "the plan names who proposes"
    again = proposer.repair(offered, joining[0].proposer.answer, "it failed")
    assert again.summary == "strong repaired: it failed"
    assert proposer.repair(offered, Adds("a").propose(SOURCE)[0], "it failed") is None


def test_what_costs_more_resources_comes_behind_what_does_not():
    class Costs(Adds):
        def screen(self, source, candidate, documents):
            return Screening((GuardVerdict("binary-occupancy", True, "4 -> 2", asks=True),))

    offered = request(Costs("a", (0.5, 0.9)), Adds("b", (0.0, 0.1)))
    first = RankedProposer().propose(offered)
    assert first.summary == "b 0"
    tried = (Attempt(first.summary, "rejected", "slower"),)
    assert RankedProposer().propose(attrs.evolve(offered, attempts=tried)).summary == "a 0"


class Ways(Adds):
    """Three ways to change each of two places; screening finds fault with the first way."""

    def propose(self, source):
        made = super().propose(source)
        return tuple(attrs.evolve(one, alternatives=f"place {int(one.id) // 3}") for one in made)

    def screen(self, source, candidate, documents):
        asks = int(candidate.id) % 3 == 0
        return Screening((GuardVerdict("binary-spills", True, "0 -> 4", asks=asks),))


def test_transformations_take_turns_with_the_best_way_of_each_place():
    ways = Ways("a", *[(0.0, 0.4)] * 6)
    assert order(ways, Adds("b", (0.0, 0.3), (0.0, 0.2)))[:4] == ["a 1", "b 0", "a 4", "b 1"]
    assert sorted(order(ways)) == [f"a {number}" for number in range(6)], "the other ways come, too"
    assert order(ways)[-2:] == ["a 0", "a 3"], "what costs registers comes last"


def test_a_spent_transformation_proposes_no_more():
    asked = request(Adds("a", (0.0, 0.4), (0.0, 0.4)), Adds("b", (0.0, 0.1)))
    assert RankedProposer().propose(attrs.evolve(asked, spent=frozenset("a"))).summary == "b 0"
    assert RankedProposer().propose(attrs.evolve(asked, spent=frozenset("ab"))) is None


def test_the_plan_is_told_before_the_first_candidate_and_once():
    notes: list[str] = []
    proposer, asked = RankedProposer(), request(Ways("a", *[(0.0, 0.4)] * 6), Adds("b"), note=notes.append)
    proposer.propose(asked)
    proposer.propose(asked)
    assert notes == [
        "plan for k, in turns:",
        "  a: 2 places (6 ways); may gain up to 40.0% of the time",
        "  b: 1 place; no document says what it gains",
    ]


def test_screening_looks_once_at_a_candidate_of_one_version():
    class Counts(Adds):
        looked = 0

        def screen(self, source, candidate, documents):
            self.looked += 1
            return Screening((GuardVerdict("compiles", False, "no"),))

    counts, proposer = Counts("a"), RankedProposer()
    asked = request(counts)
    assert (proposer.propose(asked), proposer.propose(asked), counts.looked) == (None, None, 1)
