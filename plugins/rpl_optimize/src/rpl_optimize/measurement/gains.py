"""Which gain of a kernel counts, how gains are told, and what measuring them costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rpl_core.model.diagnostic import Diagnostic
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_measure.rank_tests import REFUSE_CV, WARN_CV, NoiseLevel, noise_level, pseudo_median, robust_sigma
from rpl_measure.samples import Kind
from rpl_measure.sequential import LOOKS, LOOKS_V2, SCREENING, SCREENING_PART, AcceptRule
from rpl_measure.series import Modes, find_modes

if TYPE_CHECKING:
    from rpl_optimize.contracts import EvidencePart, MeasurementPart, PolicyPart


#: Error of a whole loop, shared by its candidates (docs/reference/statistics.md, rule 3).
LOOP_ALPHA = 0.05
#: Never accept less: code placement shifts a build by an offset that no repetition shows (same page).
LEAST_FLOOR = 0.02
#: Most that makespan and critical path may lose (rule 3).
MOST_GUARD_LOSS = 0.01
#: Futility as a part of the least gain: 1 % for 2 %, as in rules 3 and 4.
FUTILE_PART = 0.5
#: Bounds of the fresh measurement, and the standard errors that it must tell apart (chosen).
FEWEST_FRESH_PAIRS, MOST_FRESH_PAIRS = 5, 15
_FRESH_ERRORS = 1.9
#: Asymptotic cost of a median against a mean of normal values: sqrt(pi / 2).
_MEDIAN_COST = math.sqrt(math.pi / 2)


def noise_floor(base_cv: float | None, pairs: int = LOOKS_V2[-1]) -> float:
    """The least gain that ``pairs`` pairs can tell from noise, as a fraction; at least 0.02.

    Twice the standard error of the median log ratio of unchanged pairs: sqrt(2) CV from two independent
    times, over sqrt(pairs), times sqrt(pi / 2) for a median. The number of pairs is that of the last look:
    earlier looks have to be significant too, which needs a larger gain by itself. ``base_cv`` is the robust
    CV of the kernel's time over the baseline's own runs (A/A); ``None``, unknown, gives 0.02.
    """
    if base_cv is None:
        return LEAST_FLOOR
    resolution = 2 * math.sqrt(2) * base_cv * _MEDIAN_COST / math.sqrt(pairs)
    return max(LEAST_FLOOR, -math.expm1(-resolution))


def rule_for(
    min_improvement: float,
    share_of_path: float | None,
    candidates: int,
    base_cv: float | None = None,
    *,
    looks: tuple[int, ...] = LOOKS_V2,
) -> AcceptRule | None:
    """The rule for candidates of one kernel; ``None`` when no gain of it can be enough.

    ``min_improvement`` is the least gain of the application's path that is wanted (0.02: 2 %). A kernel with
    ``share_of_path`` of it gains the path at most its own gain times that share, so it has to gain
    ``min_improvement / share_of_path``, and never less than ``noise_floor``. An unknown share counts as 1,
    which asks the least of the kernel; the guards on the application's times hold all the same. ``alpha`` is
    0.05 shared by all ``candidates`` of the session.
    """
    share = 1.0 if share_of_path is None else min(share_of_path, 1.0)
    if share <= 0:
        return None
    least = max(noise_floor(base_cv, looks[-1]), min_improvement / share)
    if least >= 1:
        return None
    return AcceptRule(
        alpha=LOOP_ALPHA / max(candidates, 1),
        looks=looks,
        least_gain=least,
        futile_gain=FUTILE_PART * least,
        most_guard_loss=MOST_GUARD_LOSS,
        screening=tuple(pairs for pairs in SCREENING if pairs < looks[0]),
        screening_gain=SCREENING_PART * least,
        centre="pseudo_median",
    )


def fresh_pairs(rule: AcceptRule, log_ratios: Sequence[float]) -> int:
    """Pairs of the fresh measurement, from the spread of those that decided.

    So many that a true gain of ``least_gain`` comes out above the futile one nearly always: the distance
    between the two is 1.9 standard errors of the middle; from 5 to 15 pairs. ``accept_v1`` takes 10.
    """
    if not rule.screening:
        return LOOKS[0]
    sigma = robust_sigma(log_ratios)
    distance = math.log1p(-rule.futile_gain) - math.log1p(-rule.least_gain)
    if sigma is None or distance <= 0:
        return MOST_FRESH_PAIRS
    wanted = (_FRESH_ERRORS * sigma / distance) ** 2
    return min(MOST_FRESH_PAIRS, max(FEWEST_FRESH_PAIRS, math.ceil(min(wanted, MOST_FRESH_PAIRS))))


# What a measurement says in numbers and in words: gains of kernel and application, and its noise.


@frozen
class Gains:
    """Fractions of the time saved, below 0 for a loss; ``None`` where nothing was measured."""

    kernel: float | None = None
    kernel_interval: tuple[float, float] | None = None  # 95 %, lower end first
    application: float | None = None  # of the makespan


def gains_of(part: MeasurementPart) -> Gains:
    """The reported gains; take them from the fresh measurement."""
    look, makespan = part.look, part.guards.get(Kind.MAKESPAN.value)
    kernel, interval = None, None
    if look is not None:
        kernel = 1 - look.ratio
        interval = (1 - look.ratio_interval[1], 1 - look.ratio_interval[0])
    application = -math.expm1(-pseudo_median(makespan)) if makespan else None
    return Gains(kernel, interval, application)


def noise_diagnostic(part: MeasurementPart) -> Diagnostic | None:
    """A warning for a baseline that spreads by more than 5 % (docs/reference/statistics.md, rule 6)."""
    level = noise_level(part.base_cv)
    if part.base_cv is None or level is NoiseLevel.QUIET:
        return None
    limit = WARN_CV if level is NoiseLevel.NOISY else REFUSE_CV
    return Diagnostic(
        "optimize.noise",
        f"the baseline's time of the kernel spreads by {part.base_cv:.1%} from run to run, "
        f"over {limit:.0%}; {detectable(part)}",
        cause="other work on the machine, a changing clock, or times that depend on the input",
        remedy="free the machine, fix the clocks, or let each run do more work"
        + ("; --force judges all the same" if level is NoiseLevel.TOO_NOISY else ""),
    )


def modes_diagnostic(part: MeasurementPart) -> Diagnostic | None:
    """A warning for a baseline that runs in two modes."""
    modes = find_modes(part.base_ns)
    if modes is None:
        return None
    return Diagnostic(
        "optimize.modes",
        f"{modes_sentence(modes)}: a gain has to show among the faster runs as well",
        cause="a clock that is lowered in some runs, or memory that lands elsewhere",
        remedy="fix the clocks and free the machine, so that every run is the same",
    )


def modes_sentence(modes: Modes) -> str:
    """The modes of the baseline as a clause."""
    return (
        f"the baseline runs in two modes ({modes.slow_share:.0%} of its runs are slower by "
        f"{modes.slower_by:.1%})"
    )


def detectable(part: MeasurementPart) -> str:
    """The minimum detectable gain as a clause."""
    gain = part.look.minimum_detectable_gain if part.look is not None else None
    if gain is None:
        return "no minimum detectable gain is known"
    return f"gains below {gain:.1%} can't be shown with {counted(len(part.log_ratios), 'pair')}"


def gain_sentence(part: MeasurementPart) -> str:
    """The kernel's gain with its interval as a clause."""
    gains = gains_of(part)
    if gains.kernel is None or gains.kernel_interval is None:
        return "no gain is known"
    low, high = gains.kernel_interval
    return f"gain {gains.kernel:.1%} of the kernel's time (95 % interval {low:.1%} to {high:.1%})"


# Whether a gain is the code's or that of the place where it lies.
#
# Two builds whose kernels lie at different addresses differ in time by an offset that no repetition shows
# (docs/reference/statistics.md, "Why 2 %"). So base and candidate are built again with unused code before
# their kernels, and measured at each of these places.

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


# What measuring costs in runs of the application and in time, said before it begins.

#: One discarded run of base and candidate.
WARM_UPS = 2


def measurement_runs(rule: AcceptRule) -> tuple[int, int]:
    """Fewest and most runs of the measurement that decides."""
    return WARM_UPS + 2 * rule.all_looks[0], WARM_UPS + 2 * rule.looks[-1]


def placement_runs() -> int:
    return len(PADDINGS) * (WARM_UPS + 2 * PLACEMENT_PAIRS)


def cost_sentence(rule: AcceptRule, candidates: int, run_s: float | None, *, placement: bool | None) -> str:
    """The cost of a session with ``candidates`` of them, builds, checks and counter passes left out."""
    rejected, most = measurement_runs(rule)
    accepted = WARM_UPS + 2 * rule.looks[0] + 2 * FEWEST_FRESH_PAIRS
    most += 2 * MOST_FRESH_PAIRS + (0 if placement is False else placement_runs())
    text = (
        f"measuring takes {rejected} runs for a candidate that the screening rejects, "
        f"from {accepted} for one that is accepted, and at most {most} for any; "
        f"up to {candidates} candidates"
    )
    if run_s is None:
        return text
    return f"{text}: {_time(candidates * rejected * run_s)} to {_time(candidates * most * run_s)}"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
