"""What this distribution offers to rpl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl
from rpl_core.interfaces.options import PluginSetting, SettingKind

if TYPE_CHECKING:
    from rpl_optimize.interfaces.proposer import Proposer

RPL_API = 2
#: Options of a session with a language model that may stand in the configuration file.
RPL_SETTINGS = (
    PluginSetting("plugins.llm-unroll.model", SettingKind.VALUE, "the model, as its endpoint calls it"),
    PluginSetting("plugins.llm-unroll.base-url", SettingKind.ENDPOINT, "where source and prompts are sent"),
    PluginSetting("plugins.llm-unroll.temperature", SettingKind.VALUE, "sampling temperature"),
    PluginSetting("plugins.llm-unroll.seed", SettingKind.VALUE, "sampling seed"),
    PluginSetting("plugins.llm-unroll.max-tokens", SettingKind.VALUE, "longest reply"),
    PluginSetting("plugins.llm-unroll.token-budget", SettingKind.VALUE, "tokens of a session"),
    PluginSetting("plugins.llm-unroll.money-budget", SettingKind.VALUE, "money for a session"),
    PluginSetting("plugins.llm-unroll.price-in", SettingKind.VALUE, "price of a million prompt tokens"),
    PluginSetting("plugins.llm-unroll.price-out", SettingKind.VALUE, "price of a million reply tokens"),
    PluginSetting("plugins.llm-unroll.llm-timeout", SettingKind.VALUE, "seconds for one reply"),
)


@hookimpl
def rpl_proposers() -> tuple[Proposer, ...]:
    from rpl_llm_unroll.proposers import DeterministicProposer, LlmProposer

    return (DeterministicProposer(), LlmProposer())
