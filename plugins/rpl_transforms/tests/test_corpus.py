"""Every loop of the corpus gets exactly the verdict that the comment on its line states.

``// expect: allowed 2 4 8`` names the factors, ``// expect: refused GUARD`` the policies against it. Names of
the files say what stands in the way of a rewrite of the loop's text; most of it is no reason any more, since
the compiler unrolls.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from rpl_optimize.interfaces.transformation import EditCandidate, GuardVerdict, KernelSource, LoopHints
from rpl_optimize.transform import apply_edits
from rpl_transforms.loops import Policy
from rpl_transforms.unroll import Unroll

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.hip"))
_NAMES = [path.stem for path in CORPUS]
_EXPECT = re.compile(r"// expect: (?P<text>.*?)\s*$")
_POLICIES = {"own-pragma", "innermost", "trip-count", "barrier", "fence", "atomic", "dynamic-lds"}


def _expected(path: Path) -> dict[int, str]:
    lines = enumerate(path.read_text().splitlines(), start=1)
    return {number: match["text"] for number, line in lines if (match := _EXPECT.search(line)) is not None}


def _proposals(path: Path) -> tuple[EditCandidate, ...]:
    return Unroll().propose(KernelSource(str(path), path.read_bytes()))


def _found(path: Path) -> dict[int, str]:
    by_line: dict[int, list[EditCandidate]] = {}
    for candidate in _proposals(path):
        by_line.setdefault(candidate.line, []).append(candidate)
    return {line: _stated(entries) for line, entries in by_line.items()}


def _stated(entries: list[EditCandidate]) -> str:
    factors = [one.id.rpartition("-pragma")[2] for one in entries if one.allowed]
    guards = sorted({g.guard for one in entries for g in one.guards if not g.passed})
    return f"allowed {' '.join(factors)}" if factors else f"refused {', '.join(guards)}"


@pytest.mark.parametrize("path", CORPUS, ids=_NAMES)
def test_each_loop_gets_the_verdict_that_its_line_states(path):
    assert _found(path) == _expected(path)
    refusals = [g for c in _proposals(path) for g in c.guards if not g.passed]
    assert all(g.line is not None for g in refusals), refusals


@pytest.mark.parametrize("path", CORPUS, ids=_NAMES)
def test_an_edit_is_a_hint_on_the_line_of_its_loop(path):
    text = path.read_bytes()
    for candidate in _proposals(path):
        if not candidate.allowed:
            assert candidate.edits == ()
            continue
        (edit,) = candidate.edits
        assert re.fullmatch(rb'_Pragma\("unroll [2-8]"\) ', edit.replacement)
        after = apply_edits(text, candidate.edits)
        assert after.count(b"\n") == text.count(b"\n")
        assert text[edit.begin :].startswith((b"for", b"while", b"do"))
        assert candidate.declares == (LoopHints(),)


@pytest.mark.parametrize("guard", sorted(_POLICIES))
def test_without_this_policy_some_loop_of_the_corpus_is_offered(guard, monkeypatch):
    verdicts = Policy.verdicts

    def without(self, loop) -> tuple[GuardVerdict, ...]:
        return tuple(verdict for verdict in verdicts(self, loop) if verdict.guard != guard)

    monkeypatch.setattr(Policy, "verdicts", without)
    changed = [path for path in CORPUS if _found(path) != _expected(path)]
    assert changed, guard


def test_every_refusal_is_a_policy():
    refused = Counter(text for path in CORPUS for text in _expected(path).values() if "refused" in text)
    named = {guard for text in refused for guard in text.removeprefix("refused ").split(", ")}
    assert named == _POLICIES
