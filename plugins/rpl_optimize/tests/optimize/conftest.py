"""Evidence of a candidate that is accepted, to be spoilt one piece at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import pytest

from rpl_core.model.metric import Origin
from rpl_core.pipeline import AnalysisRequest
from rpl_measure.sequential import AcceptRule
from rpl_optimize.contracts import (
    EvidencePart,
    MeasurementPart,
    PlacementPart,
    PolicyPart,
    ShiftPart,
)
from rpl_optimize.interfaces.builder import BuildRequest
from rpl_optimize.interfaces.equivalence import EquivalenceOptions
from rpl_optimize.loop.session import Limits, OptimizeRequest
from rpl_optimize.measurement.gains import PADDINGS, rule_for
from rpl_optimize.measurement.measure import PairTimes, measurement_part, rule_of
from rpl_testkit.pair_model import flawless_evidence

#: The user's source in ``request_for``.
OLD = b"old\n"
#: Small deviations of a quiet machine, in 1e-3.
NOISE = (0, 3, -2, 1, -3, 2.5, -1.5, 0.5, -0.7, 1.7)


def measured(
    gain: float = 0.06,
    pairs: int = 10,
    *,
    rule: AcceptRule | None = None,
    spread: float = 1.0,
    application_gain: float | None = None,
    place: str = "measure",
    origin: Origin = Origin.MEASURED,
    seed: int = 0,
) -> MeasurementPart:
    """Pairs with a fixed pattern of noise; the application gains 0.8 of the kernel's gain unless told."""
    rule = rule or rule_for(0.02, 0.8, 3, 0.002)
    assert rule is not None
    whole_gain = 0.8 * gain if application_gain is None else application_gain
    noise = [spread * 1e-3 * NOISE[(number + seed) % len(NOISE)] for number in range(pairs)]
    other = [spread * 1e-3 * NOISE[(3 * number + seed + 4) % len(NOISE)] for number in range(pairs)]
    kernel = pairs_of(1e6, gain, noise, other)
    whole = pairs_of(1.25e6, whole_gain, noise, other)
    guards = {"makespan": whole, "critical_path": whole}
    return measurement_part("k", PairTimes(kernel, guards, origin), rule, place)


def pairs_of(
    time_ns: float, gain: float, base: Sequence[float], new: Sequence[float]
) -> tuple[tuple[float, float], ...]:
    return tuple(
        (time_ns * math.exp(b), time_ns * (1 - gain) * math.exp(n)) for b, n in zip(base, new, strict=True)
    )


@pytest.fixture
def accepted_evidence() -> EvidencePart:
    """Every gate ran and let it pass."""
    return flawless_evidence().model_copy(
        update={
            "measurement": measured(),
            "remeasurement": measured(0.055, place="remeasure", seed=3),
            "placement": placed(0.058, 0.052),
        }
    )


def placed(*gains: float) -> PlacementPart:
    """The gain at each place of shifted code."""
    parts = (measured(gain, 5, place=f"shifted-{p}") for gain, p in zip(gains, PADDINGS, strict=True))
    shifts = (ShiftPart(padding_bytes=p, measurement=part) for p, part in zip(PADDINGS, parts, strict=True))
    return PlacementPart(shifts=tuple(shifts))


def two_modes(gain: float) -> MeasurementPart:
    """Half of the baseline's runs happen to be slow and none of the candidate's; and the gain on top."""
    plain = measured(gain, 40)
    kernel = tuple(
        (base * (1.08 if number % 2 else 1.0), new)
        for number, (base, new) in enumerate(zip(plain.base_ns, plain.new_ns, strict=True))
    )
    rule = attrs.evolve(rule_of(plain.rule), looks=(40,), screening=())
    return measurement_part("k", PairTimes(kernel, {"makespan": kernel}, Origin.MEASURED), rule, "measure")


@pytest.fixture
def request_for(tmp_path: Path) -> Callable[..., OptimizeRequest]:
    """A request to optimise ``kernel.hip`` in ``tmp_path``, with other options as given."""
    source = tmp_path / "kernel.hip"
    source.write_bytes(OLD)

    def make(**options: object) -> OptimizeRequest:
        command = ("./app",)
        return OptimizeRequest(
            command=command,
            source=source,
            build=BuildRequest(command, source, tmp_path),
            equivalence=EquivalenceOptions(),
            policy=PolicyPart(),
            limits=Limits(),
            analysis=AnalysisRequest(),
            **options,
        )

    return make
