"""Shares, ridge, dominant type and exceeded ceilings of drawn work, as docs/ROOFLINE_DESIGN.md defines them.

A unit is busy for the sum of what its work takes at the ceiling of each type, packed instructions on the
vector unit with plain ones; the busier unit, or memory, is the share of the roof.
"""

from __future__ import annotations

import random

import attrs
import pytest

from rpl_analysis.roofline.model import Bound
from rpl_core.model.device import CeilingOrigin, ComputeCeiling, MemoryCeiling, Pipe, TypedWork
from rpl_core.model.metric import Exactness

from .conftest import COUNTER_MAP, figure

SPEC, MEASURED = CeilingOrigin.SPEC, CeilingOrigin.MEASURED
WORK = (
    TypedWork("plain_f64", "F64", Pipe.VALU),
    TypedWork("plain_f32", "F32", Pipe.VALU),
    TypedWork("packed_f32", "F32", Pipe.VALU_PACKED),
    TypedWork("packed_f16", "F16", Pipe.VALU_PACKED),
    TypedWork("matrix_f16", "F16", Pipe.MFMA),
    TypedWork("matrix_i8", "I8", Pipe.MFMA, floating=False),
)
MAP = attrs.evolve(COUNTER_MAP, work=WORK)
#: GFLOP/s by the data sheet, and a benchmark's.
PEAKS = {"plain_f64": 500.0, "plain_f32": 1000.0, "packed_f32": 2000.0, "packed_f16": 3000.0}
PEAKS |= {"matrix_f16": 8000.0, "matrix_i8": 16000.0}
CEILINGS = tuple(
    ComputeCeiling(work.data_type, work.pipe, PEAKS[work.quantity] * share, origin, "made up")
    for work in WORK
    for origin, share in ((SPEC, 1.0), (MEASURED, 0.7))
)
MEMORY = (
    MemoryCeiling("hbm", 100.0, SPEC, "made up"),
    MemoryCeiling("hbm", 80.0, MEASURED, "made up"),
    MemoryCeiling("l2", 400.0, SPEC, "made up"),
    MemoryCeiling("vl1d", 900.0, SPEC, "made up"),
    MemoryCeiling("lds", 1500.0, SPEC, "made up"),
)
VECTOR = tuple(work.quantity for work in WORK if work.pipe is not Pipe.MFMA)
MATRIX = tuple(work.quantity for work in WORK if work.pipe is Pipe.MFMA)
FLOATING = tuple(work.quantity for work in WORK if work.floating)


@attrs.frozen
class Drawn:
    """Operations and bytes of one launch of ``time_ns``."""

    work: dict[str, float]
    moved: dict[str, float]
    time_ns: float

    def figures(self) -> dict[str, float]:
        return self.work | self.moved | {"flops": sum(self.work[name] for name in FLOATING)}

    def share(self, of_sheet: float, active: float = 1.0) -> float:
        """Of the arithmetic ceilings; ``active`` of the lanes of vector work do something."""
        time = {name: amount / (PEAKS[name] * of_sheet) for name, amount in self.work.items()}
        vector = active * sum(time[name] for name in VECTOR)
        return max(vector, sum(time[name] for name in MATRIX)) / self.time_ns


def _drawn(rng: random.Random) -> Drawn:
    heavy = rng.choice((1, 1, 30))
    work = {w.quantity: rng.choice((0, rng.randint(1, 10**6) * heavy)) for w in WORK}
    moved = {n: rng.randint(1, 10**6) for n in ("hbm_bytes", "l2_bytes", "vl1d_bytes", "lds_bytes_moved")}
    return Drawn(work, moved, float(rng.randint(500, 20_000)))


@pytest.mark.parametrize("number", range(40))
def test_drawn_work_on_both_roofs(place, number: int) -> None:
    drawn = _drawn(random.Random(number))
    given = {"counter_map": MAP, "compute_ceilings": CEILINGS, "memory_ceilings": MEMORY}
    found = place(drawn.figures() | {"active_lane_fraction": 0.5}, drawn.time_ns, **given)
    rate = drawn.moved["hbm_bytes"] / drawn.time_ns
    operations = sum(drawn.work.values())
    # A type needs its operations over its ceiling; the one that needs most is the dominant one.
    needs = {name: amount / PEAKS[name] for name, amount in drawn.work.items() if amount}
    dominant = max(needs, key=lambda name: needs[name]) if needs else None
    for roof, of_sheet, memory in ((found.spec, 1.0, 100.0), (found.measured, 0.7, 80.0)):
        assert roof.compute_share.value == pytest.approx(drawn.share(of_sheet))
        assert roof.memory_share.value == pytest.approx(rate / memory)
        assert roof.position.value == pytest.approx(max(drawn.share(of_sheet), rate / memory))
        assert roof.position.exactness is Exactness.EXACT
        if dominant is not None:
            assert roof.ridge == pytest.approx(PEAKS[dominant] * of_sheet / memory)
    expected = next(((w.data_type, w.pipe) for w in WORK if w.quantity == dominant), None)
    assert found.dominant == expected
    assert found.active_lane_share.value == pytest.approx(drawn.share(1.0, active=0.5))
    if dominant is not None:
        per_byte = operations / drawn.moved["hbm_bytes"]
        assert found.bound is (Bound.COMPUTE if per_byte >= PEAKS[dominant] / 100 else Bound.MEMORY)
    else:
        assert found.bound is Bound.MEMORY
    exceeded = [] if rate <= 100 else ["hbm"]
    sheet = (("l2", "l2_bytes", 400), ("vl1d", "vl1d_bytes", 900), ("lds", "lds_bytes_moved", 1500))
    exceeded += [level for level, name, gbps in sheet if drawn.moved[name] / drawn.time_ns > gbps]
    for work in WORK:
        # Plain work may be packed work counted once.
        peak = 2000.0 if work.quantity == "plain_f32" else PEAKS[work.quantity]
        if drawn.work[work.quantity] / drawn.time_ns > peak:
            exceeded.append(f"{work.data_type} {work.pipe.value}")
    assert list(found.exceeds_ceiling) == exceeded
    for level, (name, gbps) in zip(found.levels, _LEVELS.items(), strict=True):
        flops = sum(drawn.work[kind] for kind in FLOATING)
        assert level.operational_intensity.value == pytest.approx(flops / drawn.moved[name])
        assert level.achieved_gbps.value == pytest.approx(drawn.moved[name] / drawn.time_ns)
        assert level.spec_gbps == gbps


_LEVELS = {"hbm_bytes": 100.0, "l2_bytes": 400.0, "vl1d_bytes": 900.0, "lds_bytes_moved": 1500.0}


@pytest.mark.parametrize("kind", [Exactness.ESTIMATE, Exactness.INTERVAL, Exactness.LOWER_BOUND])
def test_what_is_known_of_the_parts_is_known_of_the_share(place, kind: Exactness) -> None:
    """Plain and packed work of one unit: their ends add up, an estimate of either makes one of the sum."""
    given = {"counter_map": MAP, "compute_ceilings": CEILINGS, "memory_ceilings": MEMORY}
    upper = 300_000.0 if kind is Exactness.INTERVAL else None
    plain = figure(200_000.0, kind, upper=upper)
    figures = dict.fromkeys((*VECTOR, *MATRIX), 0.0) | {"hbm_bytes": 10.0, "packed_f32": 100_000.0}
    flops = figure(300_000.0, kind, upper=None if upper is None else upper + 100_000.0)
    found = place(figures | {"plain_f32": plain, "flops": flops}, 1000.0, **given).spec.compute_share
    # 200 GFLOP/s of 1000 and 100 of 2000.
    assert (found.value, found.exactness) == (pytest.approx(0.25), kind)
    assert found.upper == (None if upper is None else pytest.approx(0.35))
