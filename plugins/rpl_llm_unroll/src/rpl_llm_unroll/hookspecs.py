"""The hook of language models; the core finds it by the entry point ``rpl.hookspecs``.

The rules of ``rpl_core.hookspecs`` hold here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpl_core.hookspecs import hookspec
from rpl_core.plugins.catalog import ContributionKind

if TYPE_CHECKING:
    from rpl_llm_unroll.interfaces.client import LlmClient

__all__ = ["KINDS", "LLM_CLIENTS"]


@hookspec
def rpl_llm_clients(config: Mapping[str, Any]) -> tuple[LlmClient, ...] | None:
    """Offer ways to ask a language model.

    Called by the proposer ``llm``; ``--llm-client NAME`` picks one. What is asked, what a reply may be,
    budgets, secrets and the record of exchanges are the same for all.

    :return: clients with unique names.

    Order: plugin name, then as returned. Isolation: per client; fatal only for the chosen one.
    """


LLM_CLIENTS: ContributionKind[LlmClient] = ContributionKind(
    "rpl_llm_clients", "LLM client", ("rpl_llm_unroll.interfaces.client:LlmClient",)
)

KINDS: tuple[ContributionKind[Any], ...] = (LLM_CLIENTS,)
