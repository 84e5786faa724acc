"""The hooks of the reports; the core finds them by the entry point ``rpl.hookspecs``.

The rules of ``rpl_core.hookspecs`` hold here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpl_core.hookspecs import hookspec
from rpl_core.plugins.catalog import ContributionKind

if TYPE_CHECKING:
    from rpl_report.interfaces import Exporter

__all__ = ["EXPORTERS", "KINDS"]


@hookspec
def rpl_exporters(config: Mapping[str, Any]) -> tuple[Exporter, ...] | None:
    """Offer formats of other tools.

    Called by ``rpl export``; ``--format NAME`` picks one.

    :return: exporters with unique names.

    Order: plugin name, then as returned. Isolation: per exporter; fatal only for the chosen one.
    """


EXPORTERS: ContributionKind[Exporter] = ContributionKind(
    "rpl_exporters",
    "export format",
    ("rpl_report.interfaces:Exporter",),
    required_text=("summary", "suffix"),
)

KINDS: tuple[ContributionKind[Any], ...] = (EXPORTERS,)
