"""The figures behind proposals: gains that documents bound, how often loops run, factors, order, padding.

Gains come from drawn documents and a table of what each change mends; loops are run; paddings are counted.
"""

from __future__ import annotations

import random
import re
from itertools import product
from typing import Any

import pytest

from rpl_optimize.interfaces.transformation import EditCandidate, Evidence, GuardVerdict, KernelSource
from rpl_transforms import evidence
from rpl_transforms.evidence import KernelFacts, hot_instructions, hot_lines
from rpl_transforms.lds_padding import LdsPadding
from rpl_transforms.loops import find_loops
from rpl_transforms.source_file import read_source_file
from rpl_transforms.unroll import Unroll, factors_for, kernel_evidence, line_latency

LABELS = (
    *("memory_bandwidth_bound", "latency_bound", "compute_bound", "under_occupied", "divergence_limited"),
    None,
)
#: Which labels each change may mend (docs/transformations.md).
MENDS = {
    "restrict": {"memory_bandwidth_bound", "latency_bound"},
    "vector_load": {"memory_bandwidth_bound", "latency_bound"},
    "streaming": {"memory_bandwidth_bound", "latency_bound"},
    "coarsening": {"latency_bound"},
    "shuffle": {"latency_bound", "under_occupied"},
}
NAMES = ("k", "k.kd", "void k<float>(int)", "_Z1kPf", "kk", "other", "_Z2kkPf")
OF_K = NAMES[:4]


def _analysed(rng: random.Random) -> dict[str, Any]:
    """An entry of analysis.json; conflicts stand among evidence or near misses, with other quantities."""
    conflicts = rng.choice((None, 0.0, 0.25, 3.0, -1.0))
    rule = {"conditions": [{"quantity": "waves", "value": 9.0}]}
    holder = {"conditions": [{"quantity": "lds_bank_conflicts_per_access", "value": conflicts}]}
    evident, near = [rule], [rule]
    rng.choice((evident, near)).append(holder)
    return {
        "kernel": rng.choice(NAMES),
        "critical_path_score": rng.choice((None, 0.0, 0.3, 0.8, 1.2, -0.1)),
        "bottleneck": rng.choice(LABELS),
        "evidence": evident if rng.random() < 0.9 else None,
        "near_misses": near,
    }


def _profiled(rng: random.Random) -> dict[str, Any]:
    return {
        "name": rng.choice(NAMES),
        "resources": rng.choice((None, {"scratch_bytes": rng.choice((None, 0, 16, 64))})),
        "occupancy": rng.choice((None, {"limiter": rng.choice((None, "vgpr", "lds"))})),
    }


def _conflicts(entry: dict[str, Any]) -> float | None:
    rules = [*(entry.get("evidence") or ()), *(entry.get("near_misses") or ())]
    found = [
        condition["value"]
        for rule in rules
        for condition in rule["conditions"]
        if condition["quantity"] == "lds_bank_conflicts_per_access" and condition["value"] is not None
    ]
    return max(0.0, found[0]) if found else None


def test_what_a_change_may_gain_is_the_share_of_what_it_mends() -> None:
    rng = random.Random(1)
    gains = set()
    for _ in range(400):
        analysed = [_analysed(rng) for _ in range(rng.randint(0, 4))]
        profiled = [_profiled(rng) for _ in range(rng.randint(0, 3))]
        documents = {"analysis": {"kernels": analysed}, "profile": {"kernels": profiled}}
        own = [entry for entry in analysed if entry["kernel"] in OF_K]
        resources = [entry for entry in profiled if entry["name"] in OF_K]
        best: dict[str, Any] = {}
        for entry in own:  # the first of the largest
            if not best or (entry["critical_path_score"] or 0.0) > (best["critical_path_score"] or 0.0):
                best = entry
        scratch = [(entry["resources"] or {}).get("scratch_bytes") for entry in resources]
        limiters = [(entry["occupancy"] or {}).get("limiter") for entry in resources]
        facts = KernelFacts.of("k", documents)
        assert facts == KernelFacts(
            score=best.get("critical_path_score"),
            bottleneck=best.get("bottleneck"),
            scratch_bytes=max((n for n in scratch if n is not None), default=None),
            occupancy_limiter=next((one for one in limiters if one), None),
            bank_conflicts=_conflicts(best) if best else None,
        )
        score = facts.score
        share = None if score is None else min(max(score, 0.0), 1.0)
        parts: dict[str, tuple[float | None, str]] = {}
        for name, labels in MENDS.items():
            mends = None if facts.bottleneck is None else 1.0 * (facts.bottleneck in labels)
            parts[name] = mends, "bottleneck"
        spills = None if facts.scratch_bytes is None else 1.0 * (facts.scratch_bytes > 0)
        parts["launch_bounds"] = spills, "scratch_bytes"
        limiter, few = facts.occupancy_limiter, facts.bottleneck
        helps = limiter == "vgpr" and few in ("latency_bound", "under_occupied", "memory_bandwidth_bound")
        parts["waves"] = None if limiter is None or few is None else 1.0 * helps, "occupancy_limiter"
        waits = facts.bank_conflicts
        # c cycles of conflicts for each cycle without: c of 1 + c.
        parts["padding"] = None if waits is None else waits / (waits + 1), "bank_conflicts"
        for name, (part, fact) in parts.items():
            said = getattr(evidence, f"{name}_evidence")(facts)
            known = share is not None and part is not None
            assert said.expected_gain == ((0.0, pytest.approx(share * part)) if known else None), (
                name,
                facts,
            )
            assert said.facts == {"critical_path_score": score, fact: getattr(facts, fact)}
            gains.add((name, known, bool(known and said.expected_gain[1])))
    assert {name for name, _, some in gains if some} == {*MENDS, "launch_bounds", "waves", "padding"}
    assert {name for name, known, _ in gains if not known} == {*MENDS, "launch_bounds", "waves", "padding"}
    assert KernelFacts.of("k", {}) == KernelFacts()


def test_hot_rows_come_from_every_block_of_an_entry() -> None:
    entry = {
        "name": "k",
        "trace": {"hot_lines": [{"source": "a.hip:3", "latency": 5}, "junk", {"latency": 2.5}]},
        "samples": {
            "hot_instructions": [{"isa": "v_add", "latency": 4, "idle": 6}, {"isa": "s_nop", "idle": 1}],
            "hot_lines": "none",
        },
    }
    assert list(hot_lines(entry)) == [("a.hip:3", 5), ("None", 0)]
    assert list(hot_instructions(entry)) == [("v_add", 10), ("s_nop", 1)]


def _loops(text: str) -> Any:
    file = read_source_file(text.encode())
    return find_loops(file, file.kernels)


def test_loops_whose_heads_say_it_run_as_often_as_when_they_are_run() -> None:
    rng = random.Random(2)
    heads, expected = [], []
    for _ in range(60):
        first, bound = rng.randint(0, 20), rng.randint(0, 20)
        compare, step = rng.choice(("<", "<=")), rng.choice(("++i", "i++"))
        heads.append(f"for (int i = {first}; i {compare} {bound}; {step}) x += i;")
        i, runs = first, 0
        while i < bound or (compare == "<=" and i == bound):
            i, runs = i + 1, runs + 1
        expected.append(runs)
    others = ("i < n; ++i", "i > 4; ++i", "i < 4; i += 2", "i < 4; --i")
    heads += [f"for (int i = 0; {head}) x += i;" for head in others]
    heads += ["while (x < 4) x += 1;", "do { x += 1; } while (x < 4);"]
    loops = _loops("__global__ void k(int n) { int x = 0;\n" + "\n".join(heads) + "\n}\n")
    assert [loop.runs for loop in loops] == expected + [None] * 6
    assert [loop.line for loop in loops] == list(range(2, 2 + len(heads)))
    assert [loop.kind for loop in loops[-3:]] == ["for", "while", "do-while"]


def test_factors_divide_what_is_known_or_are_the_usual_ones() -> None:
    assert factors_for(None) == (2, 4, 8)
    for runs in range(70):
        usual = {factor for factor in (2, 4, 8) if factor <= runs}
        dividing = {factor for factor in range(2, 9) if factor <= runs and runs % factor == 0}
        assert factors_for(runs) == tuple(sorted(usual | dividing)), runs


NESTED = """__global__ void k(float *a, int n) {
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) a[j] += 1;
    }
    for (int j = 0; j < n; ++j) a[j] += 2;
    for (int j = 0; j < n; ++j)
        a[j] += 3;
}
__global__ void other(float *a, int n) {
    for (int j = 0; j < 6; ++j) a[j] += 1;
}
"""
#: Line of each offered loop: its kernel, the last line of it, how deep it lies.
PLACES = {3: ("k", 3, 1), 5: ("k", 5, 0), 6: ("k", 7, 0), 10: ("other", 10, 0)}


def test_loops_come_by_weight_then_time_then_depth_then_place_then_factor() -> None:
    rng = random.Random(3)
    source = KernelSource("dir/a.hip", NESTED.encode())
    candidates = tuple(c for c in Unroll().propose(source) if c.allowed)
    assert {candidate.line for candidate in candidates} == set(PLACES)
    tops = set()
    for _ in range(60):
        scores = {name: rng.choice((None, 0.2, 0.2, 0.9, 1.5)) for name in ("k", "other")}
        labels = {name: rng.choice(LABELS) for name in ("k", "other")}
        rows = [(line, rng.choice((0, 7, 100))) for line in range(1, 12) if rng.random() < 0.5]
        traced = [{"source": f"/build/a.hip:{line}", "latency": cycles} for line, cycles in rows]
        traced += [{"source": "/build/b.hip:5", "latency": 10**6}, {"source": "a.hip:x", "latency": 9}]
        profile = {"kernels": [{"name": "k", "trace": {"hot_lines": traced}}]}
        analysed = [
            {"kernel": name, "critical_path_score": scores[name], "bottleneck": labels[name]}
            for name in ("k", "other")
        ]
        found = Unroll().evidence(source, candidates, {"profile": profile, "analysis": {"kernels": analysed}})
        assert set(found) == {candidate.id for candidate in candidates}

        def place(candidate: EditCandidate, scores=scores, labels=labels, rows=rows) -> tuple[float, ...]:
            kernel, last, depth = PLACES[candidate.line]
            cycles = sum(c for line, c in rows if candidate.line <= line <= last) if kernel == "k" else 0
            factor = int(re.findall(r"\d+", candidate.id)[-1])
            if labels[kernel] == "latency_bound":
                wish = (0, -factor)
            elif labels[kernel] in ("under_occupied", "memory_bandwidth_bound", "divergence_limited"):
                wish = (0, factor)
            else:
                wish = (abs(factor - 4), factor)
            return (-(scores[kernel] or 0.0), -cycles, -depth, candidate.line, *wish)

        by_preference = sorted(candidates, key=lambda candidate: found[candidate.id].preference)
        assert by_preference == sorted(candidates, key=place)
        tops.add(by_preference[0].id)
        for candidate in candidates:
            kernel, last, _ = PLACES[candidate.line]
            score, said = scores[kernel], found[candidate.id]
            assert said.expected_gain == (None if score is None else (0.0, min(score, 1.0)))
            cycles = sum(c for line, c in rows if candidate.line <= line <= last)
            assert said.facts == {
                "critical_path_score": score,
                "bottleneck": labels[kernel],
                "traced_latency_cycles": cycles if kernel == "k" and rows else None,
            }
    assert len(tops) > 4
    refused = EditCandidate("k-L3-pragma2", "k", 3, "s", (), (GuardVerdict("g", False, "so"),))
    assert Unroll().evidence(source, (refused,), {}) == {}


def test_what_documents_say_of_a_kernel_for_unrolling() -> None:
    entries = [
        {"kernel": "k", "critical_path_score": 0.2, "bottleneck": "a"},
        {"kernel": "void k<int>()", "critical_path_score": 0.5, "bottleneck": "b"},
        {"kernel": "_Z1kv", "bottleneck": "c"},
        {"kernel": "kk", "critical_path_score": 0.9, "bottleneck": "d"},
    ]
    found = kernel_evidence({"analysis": {"kernels": entries}}, "k")
    assert (found.score, found.label) == (0.5, "b")
    unscored = kernel_evidence({"analysis": {"kernels": entries[2:]}}, "k")
    assert (unscored.score, unscored.label) == (None, "c")
    assert kernel_evidence({}, "k") == kernel_evidence({"analysis": {"kernels": 3}}, "k")
    lines = [{"source": "a.hip:4", "latency": 3}, {"source": "/x/a.hip:4", "latency": 5}]
    profile = {
        "kernels": [{"name": "k", "t": {"hot_lines": lines}}, {"name": "z", "t": {"hot_lines": lines}}]
    }
    assert line_latency({"profile": profile}, "k", "b/a.hip") == {4: 8}
    assert line_latency({"profile": profile}, "k", "b.hip") == {}


@pytest.mark.parametrize(
    ("kind", "size"), [("float", 4), ("int", 4), ("unsigned", 4), ("unsigned int", 4), ("double", 8)]
)
def test_rows_that_fill_all_banks_are_padded_by_one_element_where_that_fits(kind: str, size: int) -> None:
    """32 banks of 4 bytes, 64 KiB (docs/reference/counters.md, 3.5; docs/reference/devices.md, 4.1)."""
    for rows, columns in product((1, 31, 248, 255, 256, 512), (8, 16, 31, 32, 33, 48, 64)):
        text = f"__global__ void k() {{\n    __shared__ {kind} t[{rows}][{columns}];\n    t[0][0] = 0;\n}}\n"
        found = LdsPadding().propose(KernelSource("a.hip", text.encode(), "k"))
        fills = (columns * size) % (32 * 4) == 0
        assert len(found) == fills, (rows, columns)
        for candidate in found:
            assert (candidate.lds_growth, candidate.line) == (rows * size, 2)
            guards = {guard.guard: guard for guard in candidate.guards}
            need = rows * (columns + 1) * size
            assert guards["fits-shared-memory"].passed is (need <= 65536), (rows, columns)
            assert guards["fits-shared-memory"].reason == f"{need} bytes with the padding, 65536 are there"
            assert not guards["used-by-element"].passed  # nobody read the source
            assert candidate.edits == ()
            assert isinstance(LdsPadding().evidence_of(KernelFacts(score=0.5, bank_conflicts=1.0)), Evidence)
    exact = 65536 // (32 * 4 + 4)
    text = f"__global__ void k() {{ __shared__ float t[{exact}][32]; t[0][0] = 0; }}"
    (candidate,) = LdsPadding().propose(KernelSource("a.hip", text.encode(), "k"))
    assert candidate.lds_growth == exact * 4
