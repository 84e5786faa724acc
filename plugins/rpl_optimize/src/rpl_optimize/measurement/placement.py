"""Whether a gain is the code's or that of the place where it lies.

Two builds whose kernels lie at different addresses differ in time by an offset that no repetition shows
(docs/reference/statistics.md, "Why 2 %"). So base and candidate are built again with unused code before
their kernels, and measured at each of these places.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rpl_measure.estimates import pseudo_median
from rpl_optimize.measurement.gains import gains_of

if TYPE_CHECKING:
    from rpl_optimize.contracts.optimize import EvidencePart, MeasurementPart, PolicyPart

#: By how much the code is shifted: kernels are aligned to 256 bytes, so by one step, and beyond one page
#: (chosen).
PADDINGS = (256, 4352)
#: Pairs at each place (chosen: as many as the smallest fresh measurement).
PLACEMENT_PAIRS = 5
#: Larger gains are checked only where the user asks for it: placement explains less than this.
LARGE_GAIN = 0.05
_NOP_BYTES = 4
_PADDING = """\
#if defined(__HIP_DEVICE_COMPILE__) && __HIP_DEVICE_COMPILE__
static __attribute__((device, used, noinline)) void rpl_placement_padding() {{
  __asm__ volatile(".fill {count}, {size}, 0xbf800000");
}}
#endif
#line 1
"""


def padded(text: bytes, padding_bytes: int) -> bytes:
    """The source with a device function before everything else that nobody calls: ``s_nop`` throughout."""
    return _PADDING.format(count=padding_bytes // _NOP_BYTES, size=_NOP_BYTES).encode() + text


def is_wanted(evidence: EvidencePart, policy: PolicyPart) -> bool:
    """Whether this candidate's gain must be looked at from other places."""
    fresh = evidence.remeasurement
    if policy.placement_check is not None:
        return policy.placement_check
    # The lower end: of a gain of 4 % few pairs show 5 % now and then.
    interval = None if fresh is None else gains_of(fresh).kernel_interval
    return interval is None or interval[0] < LARGE_GAIN


def placement_share(evidence: EvidencePart) -> float | None:
    """The part of the kernel's time that placement may explain of the gain; ``None`` where nobody knows.

    The difference between the largest and the smallest gain at all places, the unshifted one included.
    """
    gains = [gain for part in _parts(evidence) if (gain := _gain(part)) is not None]
    return max(gains) - min(gains) if len(gains) > 1 else None


def placement_sentence(evidence: EvidencePart) -> str:
    """What the verdict says about placement."""
    placed, share = evidence.placement, placement_share(evidence)
    if placed is None or share is None:
        reason = "" if placed is None or placed.problem is None else f" ({placed.problem})"
        return f"code placement was not checked{reason}: it can explain a gain of some per cent"
    places = ", ".join(
        f"{_gain(shift.measurement):.1%} at +{shift.padding_bytes} bytes" for shift in placed.shifts
    )
    return f"with the code shifted it gains {places}; placement can explain up to {share:.1%} of the time"


def _parts(evidence: EvidencePart) -> Iterator[MeasurementPart]:
    if evidence.remeasurement is not None:
        yield evidence.remeasurement
    if evidence.placement is not None:
        yield from (shift.measurement for shift in evidence.placement.shifts)


def _gain(part: MeasurementPart) -> float | None:
    usable = part.problem is None and part.log_ratios
    return -math.expm1(-pseudo_median(part.log_ratios)) if usable else None
