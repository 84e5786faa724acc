"""What this distribution offers to rpl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_optimize.interfaces.proposer import Proposer
    from rpl_optimize.interfaces.transformation import Transformation

RPL_API = 1


@hookimpl
def rpl_transformations() -> tuple[Transformation, ...]:
    from rpl_llm_unroll.transformation import Unroll

    return (Unroll(),)


@hookimpl
def rpl_proposers() -> tuple[Proposer, ...]:
    from rpl_llm_unroll.proposers.deterministic import DeterministicProposer
    from rpl_llm_unroll.proposers.llm import LlmProposer

    return (DeterministicProposer(), LlmProposer())
