"""Measure two commands in pairs, in an order drawn at random, after one discarded run of each.

Slow drift of clock and temperature hits both sides of a pair alike, and no disturbance can keep time with
the order. Each observation is one process run
through the collector, kept in the run directory of its side; looks at fixed numbers of pairs may end it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_compare.comparison.arm import Arm, ArmSettings
from rpl_compare.comparison.manifest import FOLDERS, WARM_UP, WARM_UP_FOLDERS, ComparisonLog
from rpl_compare.comparison.model import Statistic
from rpl_compare.contract import Observation
from rpl_compare.statistics.pair_order import new_first
from rpl_compare.statistics.sequential import LOOKS
from rpl_core.errors import InterruptedRunError, NoVerdictError, RplError, UsageError
from rpl_core.run_directory.writer import make_empty
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_compare.comparison.side import Side
    from rpl_core.interfaces.collector import Collector, LineSink
    from rpl_core.plugins.host import PluginHost
    from rpl_core.profiling.session import StepSink

#: Asked at each look with the pairs so far; true ends the measurement.
Decided = Callable[["Side", "Side"], bool]


@frozen
class MeasureRequest:
    """What to measure. ``directory`` must not hold anything yet; times are seconds.

    ``seed`` is what the order of the pairs is drawn from. ``own_looks`` take the place of the usual ones; the
    last one is at ``most_pairs``.
    """

    base: tuple[str, ...]
    new: tuple[str, ...]
    directory: Path
    most_pairs: int = LOOKS[-1]
    trace_dependencies: bool = False
    time_limit_s: float | None = None  # of one process run
    total_time_s: float | None = None  # no pair starts later
    statistic: Statistic = Statistic.SUM
    seed: int = attrs.field(factory=lambda: secrets.randbits(32))
    own_looks: tuple[int, ...] = ()
    warm_up: bool = True  # not where both programs have just run

    @property
    def looks(self) -> tuple[int, ...]:
        """The usual looks below ``most_pairs``, and one at the end."""
        if self.own_looks:
            return self.own_looks
        return (*(look for look in LOOKS if look < self.most_pairs), self.most_pairs)


@frozen(eq=False)
class MeasuredPairs:
    """Both sides with their runs in pair order, and how the measurement ended."""

    base: Side
    new: Side
    looks: tuple[int, ...]
    out_of_time: bool

    @property
    def pairs(self) -> int:
        return len(self.base.runs)


def measure_pairs(
    request: MeasureRequest,
    *,
    collector: Collector,
    host: PluginHost,
    decided: Decided,
    log: LineSink,
    step: StepSink,
) -> MeasuredPairs:
    """Run pairs until ``decided``, the last look, or the end of the total time.

    A failing run ends it with that run's error; Ctrl-C raises ``InterruptedRunError``. The comparison
    directory then says so and keeps what finished: complete pairs can be judged later.
    """
    if request.most_pairs < 1:
        raise UsageError(f"at least one pair is needed, not {request.most_pairs}")
    make_empty(request.directory)
    record = ComparisonLog.create(
        request.directory, request.base, request.new, request.looks, seed=request.seed
    )
    settings = ArmSettings(
        collector=collector,
        host=host,
        statistic=request.statistic,
        trace_dependencies=request.trace_dependencies,
        time_limit_s=request.time_limit_s,
        log=log,
        step=step,
    )
    try:
        measured = _Measurement(request, record, settings, decided).run()
    except (InterruptedRunError, KeyboardInterrupt):
        record.finish("interrupted")
        raise InterruptedRunError(
            f"interrupted; complete pairs are kept in {request.directory}",
            next_step=f"judge them with `rpl compare {request.directory}`",
        ) from None
    except RplError as error:
        record.finish(error.one_line())
        raise
    record.finish(None)
    return measured


class _Measurement:
    """One measurement in progress."""

    def __init__(
        self, request: MeasureRequest, record: ComparisonLog, settings: ArmSettings, decided: Decided
    ) -> None:
        self._request = request
        self._record = record
        self._settings = settings
        self._decided = decided
        self._started = time.monotonic()

    def run(self) -> MeasuredPairs:
        commands = {"base": self._request.base, "new": self._request.new}
        if self._request.warm_up:
            for label, command in commands.items():
                self._warm_up(label, command)
        with (
            self._arm("base", commands["base"]) as base,
            self._arm("new", commands["new"]) as new,
        ):
            out_of_time = self._take_pairs(base, new)
            return MeasuredPairs(base.side(), new.side(), self._request.looks, out_of_time)

    def _arm(self, label: str, command: tuple[str, ...]) -> Arm:
        directory = self._request.directory / FOLDERS[label]
        return Arm(label, command, directory, self._request.most_pairs, self._settings)

    def _warm_up(self, label: str, command: tuple[str, ...]) -> None:
        """One run whose times are thrown away: caches, clocks and code objects are cold in it."""
        with Arm(label, command, self._request.directory / WARM_UP_FOLDERS[label], 1, self._settings) as arm:
            self._observe(arm, WARM_UP)

    def _take_pairs(self, base: Arm, new: Arm) -> bool:
        """True when the total time ended it."""
        for pair, swapped in enumerate(new_first(self._request.seed, self._request.most_pairs)):
            if self._is_out_of_time():
                if pair == 0:
                    raise NoVerdictError(
                        f"the warm-up took all of the {self._request.total_time_s:g} s",
                        next_step="raise --total-time",
                    )
                return True
            for arm in (new, base) if swapped else (base, new):
                self._observe(arm, pair)
            if pair + 1 in self._request.looks and self._decided(base.side(), new.side()):
                break
        return False

    def _observe(self, arm: Arm, pair: int) -> None:
        name = None
        try:
            name = arm.run_next()
        finally:
            observation = Observation(
                pair=pair, side=arm.label, run=name or arm.last_name, complete=name is not None
            )
            self._record.add(observation)

    def _is_out_of_time(self) -> bool:
        total = self._request.total_time_s
        return total is not None and time.monotonic() - self._started > total
