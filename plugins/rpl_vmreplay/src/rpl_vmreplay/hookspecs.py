"""The hook of replaying; the core finds it by the entry point ``rpl.hookspecs``.

The rules of ``rpl_core.hookspecs`` hold here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpl_core.hookspecs import hookspec
from rpl_core.plugins.catalog import ContributionKind

if TYPE_CHECKING:
    from rpl_vmreplay.interfaces import Replayer

__all__ = ["KINDS", "REPLAYERS"]


@hookspec
def rpl_replayers(config: Mapping[str, Any]) -> tuple[Replayer, ...] | None:
    """Offer devices on which captured launches can run again, or what stands for them.

    Called by ``rpl replay``; ``--replayer NAME`` picks one.

    :return: replayers with unique names.

    Order: plugin name, then as returned. Isolation: per replayer; fatal only for the chosen one.
    """


REPLAYERS: ContributionKind[Replayer] = ContributionKind(
    "rpl_replayers", "replayer", ("rpl_vmreplay.interfaces:Replayer",)
)

KINDS: tuple[ContributionKind[Any], ...] = (REPLAYERS,)
