"""Every loop of the corpus gets exactly the verdicts that the comment on its line states.

``// expect: allowed pragma 2 4; explicit 2; refused GUARD, GUARD: part of the reason`` names the allowed
factors by form and all guards that refuse any candidate of the loop.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import attrs
import pytest

from rpl_llm_unroll.guards import registry
from rpl_llm_unroll.transformation import Unroll
from rpl_optimize.interfaces.transformation import EditCandidate, KernelSource
from rpl_optimize.transform.edits import apply_edits

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.hip"))
_EXPECT = re.compile(r"// expect: (?P<text>.*?)\s*$")
_ID = re.compile(r"-(?P<form>pragma|explicit)(?P<factor>\d+)$")
_NAMES = [path.stem for path in CORPUS]


@attrs.frozen
class Verdict:
    """``allowed``: form -> factors; ``refused_by``: guards that refuse at least one candidate."""

    allowed: dict[str, tuple[int, ...]]
    refused_by: frozenset[str]


def expected_verdicts(path: Path) -> dict[int, tuple[Verdict, str]]:
    """Line -> verdict and a part of the reason."""
    found = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        match = _EXPECT.search(line)
        if match is not None:
            found[number] = _expected(match["text"])
    return found


def _expected(text: str) -> tuple[Verdict, str]:
    allowed: dict[str, tuple[int, ...]] = {}
    refused_by, reason = frozenset[str](), ""
    for part in text.removeprefix("allowed ").split("; "):
        word, _, rest = part.partition(" ")
        if word == "refused":
            guards, _, reason = rest.partition(": ")
            refused_by = frozenset(guards.split(", "))
        else:
            allowed[word] = tuple(int(factor) for factor in rest.split())
    return Verdict(allowed, refused_by), reason


def proposals(path: Path) -> tuple[EditCandidate, ...]:
    return Unroll().propose(KernelSource(str(path), path.read_bytes()))


def found_verdicts(path: Path) -> dict[int, Verdict]:
    by_line: dict[int, list[EditCandidate]] = {}
    for candidate in proposals(path):
        by_line.setdefault(candidate.line, []).append(candidate)
    return {line: _found(entries) for line, entries in by_line.items()}


def _found(entries: list[EditCandidate]) -> Verdict:
    allowed: dict[str, set[int]] = {}
    for entry in entries:
        if entry.allowed:
            match = _ID.search(entry.id)
            assert match is not None
            allowed.setdefault(match["form"], set()).add(int(match["factor"]))
    refused_by = frozenset(g.guard for e in entries for g in e.guards if not g.passed)
    return Verdict({form: tuple(sorted(factors)) for form, factors in allowed.items()}, refused_by)


@pytest.mark.parametrize("path", CORPUS, ids=_NAMES)
def test_each_loop_gets_the_verdict_that_its_line_states(path):
    expected = expected_verdicts(path)
    assert found_verdicts(path) == {line: verdict for line, (verdict, _) in expected.items()}
    for line, (_, reason) in expected.items():
        refusals = [g for c in proposals(path) if c.line == line for g in c.guards if not g.passed]
        assert not reason or any(reason in g.reason for g in refusals), (line, reason, refusals)
        assert all(g.line is not None for g in refusals), refusals


def test_the_corpus_covers_at_least_forty_kernels():
    assert len(CORPUS) >= 40


@pytest.mark.parametrize("path", CORPUS, ids=_NAMES)
def test_an_edit_leaves_every_byte_outside_the_loop_as_it_was(path):
    text = path.read_bytes()
    for candidate in proposals(path):
        if not candidate.allowed:
            continue
        (edit,) = candidate.edits
        after = apply_edits(text, candidate.edits)
        assert after.startswith(text[: edit.begin])
        assert after.endswith(text[edit.end :])
        if "pragma" in candidate.id:
            added = after[edit.begin : len(after) - len(text[edit.end :])]
            assert edit.begin == edit.end
            assert re.fullmatch(rb"\s*#pragma unroll [2-8]\r?\n[ \t]*", added), added
            assert (b"\r\n" in added) == (b"\r\n" in text)


_GUARDS = [
    *((registry.LOOP_GUARDS, "LOOP_GUARDS", guard) for guard in registry.LOOP_GUARDS),
    *((registry.FACTOR_GUARDS, "FACTOR_GUARDS", guard) for guard in registry.FACTOR_GUARDS),
]


@pytest.mark.parametrize(("guards", "name", "guard"), _GUARDS, ids=[g.__name__ for _, _, g in _GUARDS])
def test_without_this_guard_some_kernel_of_the_corpus_gets_another_verdict(guards, name, guard, monkeypatch):
    as_released = [_as_released(path) for path in CORPUS]
    monkeypatch.setattr(registry, name, tuple(g for g in guards if g is not guard))
    assert [_verdicts(path) for path in CORPUS] != as_released


@cache
def _as_released(path: Path) -> dict[int, Verdict]:
    return _verdicts(path)


def _verdicts(path: Path) -> dict[int, Verdict] | str:
    try:
        return found_verdicts(path)
    except AssertionError:  # the edit refuses what the guard should have stopped
        return "edited what can't be edited"


def test_every_guard_refuses_at_least_one_kernel_by_itself():
    alone = Counter(
        next(iter(verdict.refused_by))
        for path in CORPUS
        for verdict, _ in expected_verdicts(path).values()
        if len(verdict.refused_by) == 1
    )
    assert len(alone) == len(registry.LOOP_GUARDS) + len(registry.FACTOR_GUARDS)
