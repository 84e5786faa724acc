"""The hooks of the autotuner; the core finds them by the entry point ``rpl.hookspecs``.

The rules of ``rpl_core.hookspecs`` hold here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpl_core.hookspecs import hookspec
from rpl_core.plugins.catalog import ContributionKind

if TYPE_CHECKING:
    from rpl_autotune.interfaces import Strategy

__all__ = ["KINDS", "STRATEGIES"]


@hookspec
def rpl_strategies(config: Mapping[str, Any]) -> tuple[Strategy, ...] | None:
    """Offer ways to choose which configurations are measured.

    Called by ``rpl autotune``; ``--strategy NAME`` picks one.

    :return: strategies with unique names.

    Order: plugin name, then as returned. Isolation: per strategy; fatal only for the chosen one.
    """


STRATEGIES: ContributionKind[Strategy] = ContributionKind(
    "rpl_strategies", "strategy", ("rpl_autotune.interfaces:Strategy",)
)

#: In the order of the hooks above.
KINDS: tuple[ContributionKind[Any], ...] = (STRATEGIES,)
