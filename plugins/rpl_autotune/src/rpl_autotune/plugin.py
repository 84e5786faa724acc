"""What rpl-autotune contributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_autotune.interfaces.strategy import Strategy
    from rpl_core.interfaces.document import DocumentContract
    from rpl_core.interfaces.executor import Executor
    from rpl_core.interfaces.options import CommandOption
    from rpl_core.interfaces.section import ReportSection
    from rpl_optimize.interfaces.proposer import Proposer

RPL_API = 2


@hookimpl
def rpl_strategies() -> tuple[Strategy, ...]:
    from rpl_autotune.strategies import OptunaStrategy, RegressionStrategy

    return (RegressionStrategy(), OptunaStrategy())


@hookimpl
def rpl_options() -> tuple[CommandOption[Any], ...]:
    from rpl_autotune.options import TUNE, TUNE_BUDGET, TUNE_FINALISTS, TUNE_RUNS, TUNE_STRATEGY

    return (TUNE, TUNE_BUDGET, TUNE_RUNS, TUNE_FINALISTS, TUNE_STRATEGY)


@hookimpl(optionalhook=True)  # without rpl-optimize nobody asks
def rpl_proposers() -> tuple[Proposer, ...]:
    from rpl_autotune.source_tuning import TuningProposer

    return (TuningProposer(),)


@hookimpl
def rpl_executors() -> tuple[Executor, ...]:
    from rpl_autotune.search.outcome import RecordedExecutor

    return (RecordedExecutor(),)


@hookimpl
def rpl_documents() -> tuple[DocumentContract, ...]:
    from rpl_autotune.contracts.kinds import AutotuneContract, SearchSpaceContract

    return (AutotuneContract(), SearchSpaceContract())


@hookimpl
def rpl_report_sections() -> tuple[ReportSection, ...]:
    from rpl_autotune.report import AutotuneSection

    return (AutotuneSection(),)
