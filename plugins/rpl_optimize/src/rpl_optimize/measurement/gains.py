"""What a measurement says in numbers and in words: gains of kernel and application, and its noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rpl_compare.comparison.model import Kind
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.text.table import counted
from rpl_core.values import frozen
from rpl_measure.estimates import REFUSE_CV, WARN_CV, NoiseLevel, noise_level, pseudo_median
from rpl_measure.series import find_modes

if TYPE_CHECKING:
    from rpl_measure.series import Modes
    from rpl_optimize.contracts.optimize import MeasurementPart


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
