"""What the user asked the optimizer for, and what it works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs

from rpl_core.text import masked_words
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import Collector, LineSink
    from rpl_core.pipeline import AnalysisRequest
    from rpl_core.plugins.host import Contribution, PluginHost
    from rpl_core.profiling import StepSink
    from rpl_optimize.build.builders import ProgramBuilder
    from rpl_optimize.contracts.optimize import PolicyPart
    from rpl_optimize.equivalence.stage import EquivalenceStage
    from rpl_optimize.interfaces.builder import BuildRequest
    from rpl_optimize.interfaces.equivalence import EquivalenceOptions
    from rpl_optimize.interfaces.metric import Metric
    from rpl_optimize.interfaces.proposer import Proposer


@frozen
class Limits:
    """When the loop ends. ``min_improvement`` is the least gain of the whole application, a fraction."""

    min_improvement: float = 0.02
    candidates: int = 3  # --max-iters
    patience: int = 3  # candidates in a row that were not accepted
    time_budget_s: float | None = None


@frozen
class OptimizeRequest:
    """One session. ``source`` is absolute; ``suffix`` is what the accepted file's name gets."""

    command: tuple[str, ...]
    source: Path
    build: BuildRequest
    equivalence: EquivalenceOptions
    policy: PolicyPart
    limits: Limits
    analysis: AnalysisRequest
    kernel: str | None = None
    suffix: str = "_opt"
    command_name: str = "rpl optimize"  # that was called, for messages
    in_place: bool = False
    runs: int = 3
    roofline: bool = False
    trace_dependencies: bool = False
    time_limit_s: float | None = None  # of one process run
    proposer_options: Mapping[str, str] = attrs.field(factory=dict)
    keep_command: bool = False

    @property
    def told_command(self) -> tuple[str, ...]:
        """The command as it is written down: without its secrets, unless the user wants them kept."""
        return self.command if self.keep_command else masked_words(self.command)


#: Shown a unified diff and the evidence in words; true lets the candidate be accepted.
Approve = Callable[[str, str], bool]

#: Where a session can be held: before a candidate is proposed, built and guarded, checked and measured (or
#: compared by a model), and judged. Acceptance has its own question.
StageName = Literal["propose", "build", "measure", "verdict"]


def _go_on(_stage: StageName, _candidate: int) -> None:
    return None


@frozen(eq=False)
class Tools:
    """The parts that a session works with, chosen before it starts."""

    host: PluginHost
    collector: Collector
    builder: ProgramBuilder
    proposer: Contribution[Proposer]
    equivalence: EquivalenceStage
    approve: Approve
    note: LineSink
    log: LineSink
    step: StepSink  # gets the name of each stage
    run_step: StepSink  # gets the name of each process run within it
    metric: Contribution[Metric] | None = None  # a model in the place of measurements
    #: Returns when the stage of that candidate may begin, or raises ``KeyboardInterrupt``: the session ends
    #: there and can be resumed.
    hold: Callable[[StageName, int], None] = _go_on
