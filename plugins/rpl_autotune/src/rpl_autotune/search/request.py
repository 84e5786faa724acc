"""What a search needs to know, and who works for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_autotune.cache.store import Cache
    from rpl_autotune.evaluation.templates import Templates
    from rpl_autotune.interfaces.job import PluginChoice, Timing
    from rpl_autotune.interfaces.space import SearchSpace
    from rpl_autotune.interfaces.strategy import Strategy
    from rpl_core.interfaces.executor import Executor, ExecutorRequest


@frozen(eq=False)
class TuningRequest:
    """One search. ``budget`` counts evaluations; ``final_rounds`` 0 leaves the final measurement out.

    ``scratch`` is where builds and recordings go; ``command_text`` and ``build_text`` are the templates as
    the user wrote them.
    """

    space: SearchSpace
    templates: Templates
    command_text: str
    build_text: str | None
    timing: Timing
    budget: int
    time_budget_s: float | None
    seed: int
    seed_fraction: float
    prune_factor: float
    exhaustive: bool
    time_limit_s: float
    build_time_limit_s: float
    final_rounds: int
    scratch: Path
    working_directory: Path
    plugins: PluginChoice


def _say_nothing(_line: str) -> None:
    return None


@frozen(eq=False)
class TuningTools:
    """The plugins and sinks of a search. ``cache`` is ``None`` where nothing is measured."""

    strategy: Strategy
    strategy_plugin: str
    executor: Executor
    executor_plugin: str
    executor_request: ExecutorRequest
    cache: Cache | None
    note: Callable[[str], None] = _say_nothing
    step: Callable[[str], None] = _say_nothing
