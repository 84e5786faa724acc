"""What this distribution offers to rpl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl
from rpl_core.interfaces.options import PluginSetting
from rpl_llm_unroll.settings import OPTIONS

if TYPE_CHECKING:
    from rpl_llm_unroll.interfaces.client import LlmClient
    from rpl_optimize.interfaces.proposer import Proposer

RPL_API = 2
#: Options of a session with a language model that may stand in the configuration file.
RPL_SETTINGS = tuple(
    PluginSetting(one.setting, one.kind, one.details["help"])
    for _, one in OPTIONS.values()
    if one.setting is not None and one.kind is not None
)


@hookimpl
def rpl_proposers() -> tuple[Proposer, ...]:
    from rpl_llm_unroll.proposers import DeterministicProposer, LlmProposer

    return (DeterministicProposer(), LlmProposer())


@hookimpl
def rpl_llm_clients() -> tuple[LlmClient, ...]:
    from rpl_llm_unroll.endpoint import OpenAiClient

    return (OpenAiClient(),)
