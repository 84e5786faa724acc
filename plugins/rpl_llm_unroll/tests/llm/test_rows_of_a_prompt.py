"""Rows of a prompt, read back: where one value of the documents is another one, one row says so."""

from __future__ import annotations

import pytest

from rpl_llm_unroll.prompt.build import build_prompt
from rpl_llm_unroll.prompt.model import find_target
from rpl_optimize.interfaces.proposer import ProposalRequest
from rpl_optimize.interfaces.transformation import KernelSource

from .documents import documents_of
from .sources import SOURCE

COSTS, LABEL = "What the kernel costs", "Bottleneck"


def rows_of(documents, title):
    request = ProposalRequest(KernelSource("k.hip", SOURCE, "blend"), documents)
    prompt = build_prompt(request, find_target(request), "standard")
    (text,) = (section.text for section in prompt.sections if section.title == title)
    told = [line.removeprefix("- ").partition(": ") for line in text.splitlines()]
    return {name: value for name, _, value in told}


def changed(*changes):
    documents = documents_of()
    for path, value in changes:
        *way, last = path.split("/")
        place = documents
        for step in way:
            place = place[int(step)] if isinstance(place, list) else place[step]
        place[last] = value
    return documents


KERNEL, SYMBOL, STEP = "profile/kernels/0", "dag/symbols/0", "dag/forecasts/0/speedups/0"
GAIN = "gain of the application if it ran 2 times as fast (modelled)"
ROWS = [
    (COSTS, (), "GPU time of the application per run", "8 ms (measured)"),
    (COSTS, (), "this kernel per run", "6 ms (measured), 75.0% of the GPU time"),
    (COSTS, (), "launches per run", "4"),
    (COSTS, (), "median of one launch", "1.4 ms"),
    (COSTS, (), GAIN, "3 ms, 1.6x"),
    (COSTS, (("profile/runtime_ms", 12.0),), "GPU time of the application per run", "12 ms (measured)"),
    (
        COSTS,
        (("profile/stability", {"runs": 3, "cv": 0.0123}),),
        "GPU time of the application per run",
        "8 ms (measured, 3 runs, CV 1.23%)",
    ),
    (
        COSTS,
        (("profile/runtime_exactness", "estimate"),),
        "GPU time of the application per run",
        "8 ms (measured, an estimate)",
    ),
    (
        COSTS,
        (("profile/runtime_ms", None), ("profile/runtime_reason", "no clock")),
        "GPU time of the application per run",
        "not collected: no clock",
    ),
    (COSTS, ((f"{KERNEL}/median_ns", None),), "median of one launch", "not collected"),
    (COSTS, ((f"{KERNEL}/median_ns", 2500.0),), "median of one launch", "2.5 us"),
    (COSTS, ((f"{KERNEL}/launches", 31),), "launches per run", "31"),
    (COSTS, ((f"{KERNEL}/time_share", None),), "this kernel per run", "6 ms (measured), not collected"),
    (
        COSTS,
        ((f"{KERNEL}/runtime_ms", None), (f"{KERNEL}/runtime_reason", "lost")),
        "this kernel per run",
        "not collected: lost",
    ),
    (
        COSTS,
        ((f"{SYMBOL}/speedup_ceiling", None), (f"{SYMBOL}/criticality_weight", 1.0)),
        "share of the critical path",
        "f = 100.0%; ceiling of the path's speed-up by this kernel alone: 1/(1-f) = unbounded",
    ),
    (
        COSTS,
        ((f"{SYMBOL}/path_ceiling", 1.234),),
        "the same with other paths taking over",
        "1.23x (modelled)",
    ),
    (
        COSTS,
        (("dag/status", "unavailable"), ("dag/reason", "no calls")),
        "critical path",
        "not collected: no calls",
    ),
    (
        COSTS,
        ((f"{SYMBOL}/name", "another"),),
        "critical path",
        "not collected: this kernel has no entry in the execution graph",
    ),
    (COSTS, ((f"{STEP}/application_speedup", None),), GAIN, "3 ms"),
    (
        COSTS,
        ((f"{STEP}/application_gain_at_most_ns", 5_000_000),),
        GAIN,
        "3 ms to 5 ms: stream order unknown",
    ),
    (
        COSTS,
        ((f"{STEP}/speedup", None),),
        "gain of the application if it cost nothing (modelled)",
        "3 ms, 1.6x",
    ),
    (LABEL, (), "label", "latency_bound, confidence high"),
    (LABEL, (), "headroom", "40.0% of its time (estimate from the trace)"),
    (LABEL, (), "evidence (waits)", "dependency_wait_fraction = 0.61 (estimate), tested >= 0.5"),
    (
        LABEL,
        (("analysis/kernels/0/evidence/0/conditions/0/value", None),),
        "evidence (waits)",
        "dependency_wait_fraction = not collected (estimate), tested >= 0.5",
    ),
    (
        LABEL,
        (("analysis/kernels/0/evidence/0/conditions/0/exactness", "exact"),),
        "evidence (waits)",
        "dependency_wait_fraction = 0.61, tested >= 0.5",
    ),
    (
        LABEL,
        (
            ("analysis/kernels/0/headroom_fraction", None),
            ("analysis/kernels/0/headroom_reason", "no roof is known"),
        ),
        "headroom",
        "not collected: no roof is known",
    ),
    (
        LABEL,
        (("analysis/kernels/0/headroom_source", None),),
        "headroom",
        "40.0% of its time (estimate from an unnamed source)",
    ),
    (
        LABEL,
        (("analysis/kernels/0/unknown", [f"q{n}" for n in range(8)]),),
        "not collected",
        "q0; q1; q2; q3; q4; q5; and 2 more",
    ),
    (LABEL, (("analysis/kernels/0/unknown", [f"q{n}" for n in range(6)]),), "not collected",
     "q0; q1; q2; q3; q4; q5"),
]  # fmt: skip


@pytest.mark.parametrize(("title", "changes", "row", "value"), ROWS)
def test_a_row_says_what_the_document_holds(title, changes, row, value):
    assert rows_of(changed(*changes), title)[row] == value


@pytest.mark.parametrize("title", [COSTS, LABEL])
def test_one_value_changes_no_other_row(title):
    plain = rows_of(documents_of(), title)
    for where, changes, row, _ in ROWS:
        if where == title and row in plain and len(changes) == 1:
            other = rows_of(changed(*changes), title)
            differing = {name for name in plain.keys() & other.keys() if plain[name] != other[name]}
            assert differing <= {row}, changes
