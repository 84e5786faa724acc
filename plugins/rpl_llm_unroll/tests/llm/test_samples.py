"""Several kernels per candidate: only the fastest is handed in, and the model hears of the others."""

from __future__ import annotations

import json

import attrs
import pytest

from rpl_optimize.interfaces.proposer import Attempt, TriedOut
from rpl_optimize.transform import apply_edits

from .sources import GOOD, SOURCE, fenced

UNROLLED = {factor: GOOD.replace("unroll 4", f"unroll {factor}") for factor in (2, 3, 4, 8)}


@attrs.define
class Runs:
    """Stands for building and running: what the kernel with a factor takes, in ms or as a problem."""

    takes: dict[int, float | str]
    tried: list[int] = attrs.field(factory=list)
    time_is_up: bool = False

    def __call__(self, candidate, runs):
        assert runs == 2
        if self.time_is_up:
            return TriedOut(None, problem="the session's time budget is used up", built=False, ended=True)
        text = apply_edits(SOURCE, candidate.edits).decode()
        (factor,) = (one for one in UNROLLED if f"unroll {one}\n" in text)
        self.tried.append(factor)
        took = self.takes[factor]
        return TriedOut(None, problem=took) if isinstance(took, str) else TriedOut(took)


def _factor(candidate):
    return next(one for one in UNROLLED if f"unroll {one}\n" in apply_edits(SOURCE, candidate.edits).decode())


def _prompt(server, number):
    return server.requests[number]["messages"][1]["content"]


def test_the_fastest_of_them_is_handed_in_and_each_later_prompt_tells_what_was_seen(bench, serve):
    server = serve(*(fenced(UNROLLED[one]) for one in (4, 8, 2)))
    runs = Runs({4: 1.5, 8: 0.75, 2: 1.0})
    candidate = bench.proposer().propose(attrs.evolve(bench.request(samples="3"), try_out=runs))
    assert (_factor(candidate), candidate.allowed, runs.tried) == (8, True, [4, 8, 2])
    assert "Nothing yet" in _prompt(server, 0)
    assert "tried out: 1.5 ms in 2 runs, not measured" in _prompt(server, 1)
    assert "tried out: 0.75 ms in 2 runs" in _prompt(server, 2)
    assert any("3 kernels ran" in note and candidate.summary in note for note in bench.notes)


def test_a_kernel_that_fails_is_repaired_and_counts_as_one_sample(bench, serve):
    server = serve(*(fenced(UNROLLED[one]) for one in (3, 4, 2)))
    runs = Runs({3: "it does not build: no member x", 4: 0.5, 2: 0.9})
    candidate = bench.proposer().propose(attrs.evolve(bench.request(samples="2"), try_out=runs))
    assert (_factor(candidate), runs.tried) == (4, [3, 4, 2])
    assert "no member x" in server.requests[1]["messages"][-1]["content"]  # a repair turn
    assert "no member x" in _prompt(server, 2)  # and told to the next sample


def test_one_that_can_not_be_repaired_leaves_room_for_the_next(bench, serve):
    serve(*(fenced(UNROLLED[one]) for one in (3, 8, 2, 4)))
    runs = Runs({3: "no", 8: "no", 2: "no", 4: 1.0})
    candidate = bench.proposer().propose(attrs.evolve(bench.request(samples="2"), try_out=runs))
    assert (_factor(candidate), runs.tried) == (4, [3, 8, 2, 4])


def test_without_any_time_the_last_problem_is_the_reason(bench, serve):
    serve(*(fenced(UNROLLED[one]) for one in (3, 8, 2, 4)), "no code")
    runs = Runs(dict.fromkeys(UNROLLED, "other results (out.bin): 3 of 64 differ"))
    candidate = bench.proposer().propose(attrs.evolve(bench.request(samples="2"), try_out=runs))
    assert (candidate.edits, candidate.allowed) == ((), False)
    assert candidate.guards[0].guard in ("samples", "reply-contract")
    assert runs.tried == [3, 8, 2, 4]


def test_when_the_time_is_up_nobody_is_asked_again(bench, serve):
    server = serve(fenced(GOOD))
    runs = Runs({}, time_is_up=True)
    candidate = bench.proposer().propose(attrs.evolve(bench.request(samples="5"), try_out=runs))
    assert candidate.guards[0].reason == "the session's time budget is used up"
    assert len(server.requests) == 1
    assert not (bench.directory / "samples.jsonl").exists()


def test_the_token_budget_ends_a_round_and_what_ran_until_then_counts(bench, serve):
    server = serve(*(fenced(UNROLLED[one]) for one in (4, 8, 2)))
    options = {"token_budget": "2600", "max_tokens": "1000", "samples": "9"}
    runs = Runs({4: 1.0, 8: 2.0, 2: 0.5})
    candidate = bench.proposer().propose(attrs.evolve(bench.request(**options), try_out=runs))
    assert 0 < len(server.requests) < 9
    assert _factor(candidate) == min(runs.tried, key=runs.takes.__getitem__)


def test_an_interrupted_round_is_not_paid_for_twice(bench, serve):
    server = serve(*(fenced(UNROLLED[one]) for one in (4, 8, 2)))

    def struck(candidate, runs):
        if len(first.tried) == 2:
            raise KeyboardInterrupt
        return first(candidate, runs)

    first = Runs({4: 1.5, 8: 0.75})
    with pytest.raises(KeyboardInterrupt):
        bench.proposer().propose(attrs.evolve(bench.request(samples="3"), try_out=struck))
    with (bench.directory / "samples.jsonl").open("a") as stream:
        stream.write('{"kernel": "torn')
    second = Runs({2: 1.0})
    candidate = bench.proposer().propose(attrs.evolve(bench.request(samples="3"), try_out=second))
    assert (_factor(candidate), second.tried, len(server.requests)) == (8, [2], 3)


def test_the_next_round_hears_of_the_samples_of_this_one_also_after_a_restart(bench, serve):
    server = serve(*(fenced(UNROLLED[one]) for one in (4, 8, 4, 2)))
    runs = Runs({4: 1.5, 8: 0.75, 2: 0.6})
    request = attrs.evolve(bench.request(samples="2"), try_out=runs)
    best = bench.proposer().propose(request)
    attempts = (Attempt(best.summary, "rejected", "no faster"),)
    again = bench.proposer().propose(attrs.evolve(request, attempts=attempts))
    asked = _prompt(server, 2)
    assert "rejected: no faster" in asked
    assert "tried out: 1.5 ms" in asked
    assert "tried before" in server.requests[3]["messages"][-1]["content"]  # unroll 4 again
    assert _factor(again) == 2


def test_lines_of_somebody_else_in_the_record_change_nothing(bench, serve):
    serve(fenced(UNROLLED[4]), fenced(UNROLLED[8]))
    (bench.directory / "samples.jsonl").write_text(
        "\n".join(
            json.dumps(line)
            for line in (
                [],
                {"kernel": "blend", "earlier": 0, "summary": "x", "value": -1, "unit": "ms", "problem": None},
                {
                    "kernel": "blend",
                    "earlier": 0,
                    "summary": "x",
                    "value": 1e999,
                    "unit": "ms",
                    "problem": None,
                },
            )
        )
    )
    runs = Runs({4: 1.5, 8: 2.5})
    candidate = bench.proposer().propose(attrs.evolve(bench.request(samples="2"), try_out=runs))
    assert (_factor(candidate), runs.tried) == (4, [4, 8])


def test_one_sample_or_nothing_to_try_with_is_the_plain_way(bench, serve):
    serve(fenced(UNROLLED[8]))
    runs = Runs({})
    plain = bench.proposer().propose(attrs.evolve(bench.request(), try_out=runs))
    without = bench.proposer().propose(bench.request(samples="4"))
    assert (_factor(plain), _factor(without), runs.tried) == (8, 8, [])
