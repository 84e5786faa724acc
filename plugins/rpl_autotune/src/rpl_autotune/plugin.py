"""What rpl-autotune contributes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core import hookimpl
from rpl_core.interfaces.document import DocumentContract

if TYPE_CHECKING:
    from rpl_autotune.contracts import AutotuneDocument, SpaceFile
    from rpl_autotune.interfaces import Strategy
    from rpl_core.interfaces.executor import Executor
    from rpl_core.interfaces.options import CommandOption
    from rpl_core.interfaces.section import ReportSection
    from rpl_optimize.interfaces.proposer import Proposer

RPL_API = 2


@hookimpl
def rpl_strategies() -> tuple[Strategy, ...]:
    from rpl_autotune.strategies import NeighboursStrategy, OptunaStrategy, RegressionStrategy

    return (RegressionStrategy(), NeighboursStrategy(), OptunaStrategy())


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
    from rpl_autotune.recorded_space import RecordedExecutor

    return (RecordedExecutor(),)


@hookimpl
def rpl_documents() -> tuple[DocumentContract, ...]:
    return (AutotuneContract(), SearchSpaceContract())


@hookimpl
def rpl_report_sections() -> tuple[ReportSection, ...]:
    from rpl_autotune.report import AutotuneSection

    return (AutotuneSection(),)


# The contracts as the core knows them; the models are imported when somebody looks.


class AutotuneContract(DocumentContract):
    name = "autotune"
    summary = "a search of launch and tile parameters"

    def model(self) -> type[AutotuneDocument]:
        from rpl_autotune.contracts import AutotuneDocument

        return AutotuneDocument

    def found_in(self, directory: Path) -> str:
        best = directory / "best"
        return f"see it with `rpl autotune --show {directory}`; the profile of the winner is {best}"


class SearchSpaceContract(DocumentContract):
    name = "search-space"
    summary = "the space file of `rpl autotune`"

    def model(self) -> type[SpaceFile]:
        from rpl_autotune.contracts import SpaceFile

        return SpaceFile
