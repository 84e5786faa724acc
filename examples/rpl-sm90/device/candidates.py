"""(2) Candidates whose gain is known, judged by the rule of ``rpl optimize`` on pairs of process runs.

300 null candidates: the same code at another address, the same work. 30 with 5 % less work, 10 each with 2
and 10 %. A row per candidate; a later call goes on where this one ended. What a candidate must pass is what a
session asks: the first measurement, the fresh one, and for gains below 5 % the one at two other places.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from bench import Results, build, machine

from rpl_core.plugins.discovery import PluginSelection
from rpl_core.plugins.host import PluginHost, create_host
from rpl_measure.rank_tests import robust_sigma
from rpl_optimize.contracts import (
    EvidencePart,
    MeasurementPart,
    PlacementPart,
    PolicyPart,
    ShiftPart,
)
from rpl_optimize.measurement.gains import (
    PADDINGS,
    PLACEMENT_PAIRS,
    fresh_pairs,
    gains_of,
    is_wanted,
    rule_for,
)
from rpl_optimize.measurement.measure import CandidateMeasurement, MeasureTools, measure_candidate, remeasure
from rpl_optimize.measurement.verdict import find_against, find_against_fresh, find_against_places
from rpl_sm90.collector import CuptiCollector

#: Word on the command line -> the kernel's name as recordings show it.
KERNELS = {
    "triad": "triad(float const*, float const*, float*, unsigned long)",
    "fma": "fma_loop(float*, int)",
    "chase": "chase(int const*, int*, int)",
    "gemm": "gemm(float const*, float const*, float*, int, int)",
    "reduce": "reduce(float const*, float*, unsigned long)",
}
LAUNCHES = 20
#: True gain -> candidates; drawn in one shuffled order, so that each call holds some of all.
WANTED = {0.0: 300, 0.05: 30, 0.02: 10, 0.10: 10}
PLACES = (64, 192, 448, 960)
POLICY = PolicyPart(traffic_gate=False)


def main() -> int:
    scratch, seconds = Path(sys.argv[1]), float(sys.argv[2])
    results = Results("candidates.jsonl", seconds)
    gains = [gain for gain, count in WANTED.items() for _ in range(count)]
    order = np.random.default_rng(20261123).permutation(len(gains))
    programs = {padding: build(scratch, padding) for padding in (0, *PLACES)}
    host = create_host(PluginSelection(), config={})
    for number in results.open_until_late():
        if number >= len(gains):
            break
        gain = gains[order[number]]
        kernel = list(KERNELS)[number % len(KERNELS)]
        place = PLACES[number % len(PLACES)]
        folder = scratch / "candidate"
        shutil.rmtree(folder, ignore_errors=True)
        row = judged(host, programs, kernel, gain, place, folder, seed=number)
        results.add(number=number, kernel=kernel, true_gain=gain, padding=place, machine=machine(), **row)
    summary(results)
    return 0


def judged(
    host: PluginHost,
    programs: dict[int, Path],
    kernel: str,
    gain: float,
    place: int,
    folder: Path,
    seed: int,
) -> dict[str, Any]:
    rule = rule_for(0.02, 1.0, candidates=3)
    assert rule is not None
    tools = MeasureTools(CuptiCollector(), host, _silent, _silent, _silent)
    runs = [0]

    def pairs(name: str, base: int, new: int, count: int | None) -> MeasurementPart:
        asked = CandidateMeasurement(
            kernel=KERNELS[kernel],
            base=(str(programs[base]), "pair", kernel, str(LAUNCHES), "1.0"),
            new=(str(programs[new]), "pair", kernel, str(LAUNCHES), str(1.0 - gain)),
            directory=folder / name,
            rule=rule,
            seed=seed * 7 + len(runs),
        )
        part = measure_candidate(asked, tools) if count is None else remeasure(asked, tools, count)
        runs[0] += 2 * len(part.log_ratios) + 2
        return part

    first = pairs("first", 0, place, None)
    evidence = EvidencePart(measurement=first)
    found = list(find_against(first, POLICY))
    stage = "measurement"
    if not found:
        stage, fresh = "remeasurement", pairs("fresh", 0, place, fresh_pairs(rule, first.log_ratios))
        evidence = EvidencePart(measurement=first, remeasurement=fresh)
        found = list(find_against_fresh(fresh, first, POLICY))
    if not found and is_wanted(evidence, POLICY):
        stage = "placement"
        shifts = tuple(
            ShiftPart(
                padding_bytes=padding, measurement=pairs(f"shift-{padding}", base, new, PLACEMENT_PAIRS)
            )
            for padding, base, new in zip(PADDINGS, PLACES, (*PLACES[1:], PLACES[0]), strict=False)
        )
        evidence = evidence.model_copy(update={"placement": PlacementPart(shifts=shifts)})
        found = list(find_against_places(evidence, POLICY))
    measured = gains_of(evidence.remeasurement or first)
    return {
        "verdict": found[0].verdict if found else "accepted",
        "stage": stage,
        "reason": found[0].reason if found else "",
        "runs": runs[0],
        "pairs": len(first.log_ratios),
        "measured_gain": measured.kernel,
        "base_cv": first.base_cv,
        "sigma_log_ratio": robust_sigma(first.log_ratios),
        "base_ns": first.base_ns,
        "new_ns": first.new_ns,
    }


def _silent(_text: str) -> None:
    """No progress: the rows are the output."""


def summary(results: Results) -> None:
    rows = results.known()
    for gain in WANTED:
        ours = [row for row in rows if row["true_gain"] == gain]
        accepted = sum(row["verdict"] == "accepted" for row in ours)
        runs = sorted(row["runs"] for row in ours)
        middle = runs[len(runs) // 2] if runs else None
        print(f"true gain {gain:.0%}: {accepted} of {len(ours)} accepted, median {middle} runs")
    if "OUT" not in os.environ:
        print("set OUT to keep the rows")


if __name__ == "__main__":
    sys.exit(main())
