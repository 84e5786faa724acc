"""Every count of drawn samples, of kernels, lines, instructions, reasons and types, by going through rows.

Intervals are those of ``test_confidence``; here they only have to hold their share.
"""

from __future__ import annotations

import random
from collections import Counter
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from rpl_core.model.metric import Origin
from rpl_pcsampling.counting import sampled_kernels, source_line
from rpl_pcsampling.samples import INSTRUCTION_TYPES, STALL_REASONS, Method, PcSamples, Place, Position

PLACES = (
    Place("v_add_f32 v0, v1, v2", "/src/a.hip:7", 1, 16),
    Place("s_waitcnt vmcnt(0)", "/src/b.h:3 -> /src/a.hip:9", 1, 20),
    Place("v_mul_f32 v0, v1, v2", "/src/a.hip:7", 1, 24),
    Place("s_nop 0", "/src/a.hip:0", 2, 4),
    Place(None, None, 2, 8),
    Place("s_endpgm", None, None, None),
)
LINES = ("/src/a.hip:7", "/src/b.h:3", "/src/a.hip:7", None, None, None)


def _samples(rng: random.Random, method: Method, count: int) -> PcSamples:
    def column(values: Any, kind: Any) -> Any:
        return np.array([rng.choice(values) for _ in range(count)], kind)

    return PcSamples(
        method=method,
        position=Position.OFFSET,
        origin=Origin.MEASURED,
        kernels=("first", "second"),
        places=PLACES,
        kernel=column((-1, 0, 0, 1), np.int32),
        place=column(range(len(PLACES)), np.int32),
        dispatch_id=column((1, 2, 3), np.int64),
        timestamp_ns=column(range(1, 12), np.int64),
        lanes=column((-1, 1, 32, 64), np.int8),
        issued=column((-1, 0, 0, 1), np.int8),
        reason=column((-1, 0, 2, 3, 9), np.int8),
        instruction_type=column((-1, 1, 2, 16), np.int8),
        waves=column((-1, 4, 9), np.int16),
        unnamed="no kernel is known",
        every=rng.choice((None, 100)),
    )


def _check(found: Any, rows: list[int], samples: PcSamples, tells: bool) -> None:
    """The counts of one kernel, line or instruction over its rows."""
    issued = [int(samples.issued[i]) for i in rows]
    assert found.samples == len(rows)
    lanes = [int(samples.lanes[i]) for i in rows if samples.lanes[i] >= 0]
    waves = [int(samples.waves[i]) for i in rows if samples.waves[i] >= 0]
    assert found.lanes == (pytest.approx(fmean(lanes)) if lanes else None)
    assert found.waves == (pytest.approx(fmean(waves)) if waves else None)
    assert (found.issued, found.stalled) == ((issued.count(1), issued.count(0)) if tells else (None, None))


def _reasons(rows: list[int], samples: PcSamples) -> Counter[str]:
    return Counter(
        STALL_REASONS[samples.reason[i]] for i in rows if samples.issued[i] == 0 and samples.reason[i] >= 0
    )


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("count", [1, 40, 96, 97, 300])
def test_every_count_is_that_of_its_rows(method: Method, count: int) -> None:
    rng = random.Random(count)
    samples = _samples(rng, method, count) if count < 300 else _samples(rng, method, 700)
    if count in (96, 97):  # all of one kernel, just below and at what is enough
        samples.kernel[:] = 0
    tells = method is Method.STOCHASTIC
    by_kernel = {k: [i for i in range(len(samples)) if samples.kernel[i] == k] for k in (-1, 0, 1)}
    order = sorted((k for k, rows in by_kernel.items() if rows), key=lambda k: (-len(by_kernel[k]), k))
    kernels = list(sampled_kernels(samples))
    assert [one.kernel for one in kernels] == [{-1: None, 0: "first", 1: "second"}[k] for k in order]
    for found, key in zip(kernels, order, strict=True):
        rows = by_kernel[key]
        _check(found, rows, samples, tells)
        assert found.kernel_reason == ("no kernel is known" if key == -1 else None)
        assert (found.status == "too_few_samples") is (len(rows) < 97)
        assert (found.reason is None) is (len(rows) >= 97)
        assert found.dispatches == len({int(samples.dispatch_id[i]) for i in rows})
        assert found.ticks == len({int(samples.timestamp_ns[i]) for i in rows})
        assert found.undecoded == sum(PLACES[samples.place[i]].instruction is None for i in rows)
        unit = "cycles" if tells else "us"
        assert (found.sampled_every, found.sampled_unit) == (
            (None, None) if samples.every is None else (100, unit)
        )
        assert set(found.unavailable) == (set() if tells else {"issued", "stalls", "waves"})

        placed = Counter(int(samples.place[i]) for i in rows)
        told = {(one.instruction, one.source, one.code_object, one.offset): one for one in found.places}
        assert len(told) == len(placed) == len(found.places)
        for place, one in placed.items():
            known = PLACES[place]
            part = told[known.instruction, known.source, known.code_object, known.offset]
            own = [i for i in rows if samples.place[i] == place]
            _check(part, own, samples, tells)
            assert part.share == pytest.approx(one / len(rows))
            assert 0 <= part.share_low <= part.share <= part.share_high <= 1
            assert part.too_few is (part.share_high - part.share_low > part.share)
            assert part.stalls == (dict(_reasons(own, samples)) if tells else None)
        keys = [(-p.samples, p.code_object or 0, p.offset or 0, p.instruction or "") for p in found.places]
        assert keys == sorted(keys)

        lined = {line for line in (LINES[place] for place in placed) if line}
        assert {one.source for one in found.lines} == lined
        for part in found.lines:
            own = [i for i in rows if LINES[samples.place[i]] == part.source]
            _check(part, own, samples, tells)
            assert part.instructions == sum(LINES[place] == part.source for place in placed)
            assert part.share == pytest.approx(len(own) / len(rows))
        keys_of_lines = [(-one.samples, one.source) for one in found.lines]
        assert keys_of_lines == sorted(keys_of_lines)
        assert (found.lines_reason is None) is bool(lined)

        if not tells:
            assert (found.issue_share, found.stalls, found.instruction_types) == (None, None, None)
            continue
        assert found.issue_share is not None
        assert found.issue_share.samples == sum(samples.issued[i] == 1 for i in rows)
        reasons = _reasons(rows, samples)
        assert {s.reason: s.samples for s in found.stalls or ()} == {
            reason: reasons[reason] for reason in STALL_REASONS if reason != "none" or reasons[reason]
        }
        ranked = [(-s.samples, STALL_REASONS.index(s.reason)) for s in found.stalls or ()]
        assert ranked == sorted(ranked)
        types = Counter(
            INSTRUCTION_TYPES[samples.instruction_type[i]] for i in rows if samples.instruction_type[i] >= 0
        )
        assert found.instruction_types == dict(types)
        counts = list((found.instruction_types or {}).values())
        assert counts == sorted(counts, reverse=True)


def test_the_line_of_a_place_is_that_of_its_innermost_frame() -> None:
    assert tuple(source_line(place.source) for place in PLACES) == LINES
    assert source_line("C:\\a.hip:12") == "C:\\a.hip:12"
    assert source_line("/a.hip:1") == "/a.hip:1"
    assert source_line("/a.hip:x") is source_line("/a.hip") is source_line("") is None
