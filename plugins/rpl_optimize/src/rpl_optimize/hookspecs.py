"""The hooks of the optimizer; the core finds them by the entry point ``rpl.hookspecs``.

The rules of ``rpl_core.hookspecs`` hold here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpl_core.hookspecs import hookspec
from rpl_core.plugins.catalog import ContributionKind

if TYPE_CHECKING:
    from rpl_optimize.interfaces.builder import BuildSystem
    from rpl_optimize.interfaces.equivalence import EquivalenceCheck
    from rpl_optimize.interfaces.metric import Metric
    from rpl_optimize.interfaces.proposer import Proposer
    from rpl_optimize.interfaces.transformation import Transformation

__all__ = ["BUILDERS", "EQUIVALENCE_CHECKS", "KINDS", "METRICS", "PROPOSERS", "TRANSFORMATIONS"]


@hookspec
def rpl_builders(config: Mapping[str, Any]) -> tuple[BuildSystem, ...] | None:
    """Offer ways to build a program from a changed source.

    Called by the optimizer.

    :return: kinds of builds with unique names.

    Order: highest ``priority``, then plugin name; the first that answers is used.
    Isolation: per build system.
    """


@hookspec
def rpl_transformations(config: Mapping[str, Any]) -> tuple[Transformation, ...] | None:
    """Offer source-to-source changes of kernels.

    Called by ``rpl transform`` and by the optimizer.

    :return: transformations with unique names.

    Order: plugin name, then as returned. Isolation: per transformation.
    """


@hookspec
def rpl_proposers(config: Mapping[str, Any]) -> tuple[Proposer, ...] | None:
    """Offer ways to choose the optimizer's next candidate.

    Called by the optimizer; ``--proposer NAME`` picks one.

    :return: proposers with unique names.

    Order: plugin name, then as returned. Isolation: per proposer; fatal only for the chosen one.
    """


@hookspec
def rpl_equivalence_checks(config: Mapping[str, Any]) -> tuple[EquivalenceCheck, ...] | None:
    """Offer checks that a changed program computes the same.

    Called by the optimizer before it measures a candidate.

    :return: checks; they are asked in order, and the first ``different`` rejects the candidate. One that
        says ``equal`` is shown a kernel that does nothing and one that stores wrong values.

    Order: plugin name, then as returned. Isolation: per check; a check that fails to run counts as
    ``not_run``, never as ``equal``.
    """


@hookspec
def rpl_metrics(config: Mapping[str, Any]) -> tuple[Metric, ...] | None:
    """Offer figures of models by which candidates are compared on devices that measure nothing.

    Called by the optimizer; ``--metric NAME`` picks one. No candidate is accepted by a model.

    :return: metrics with unique names.

    Order: plugin name, then as returned. Isolation: per metric; fatal only for the chosen one.
    """


_INTERFACES = "rpl_optimize.interfaces"

BUILDERS: ContributionKind[BuildSystem] = ContributionKind(
    "rpl_builders", "build system", (f"{_INTERFACES}.builder:BuildSystem",), numbers=("priority",)
)
TRANSFORMATIONS: ContributionKind[Transformation] = ContributionKind(
    "rpl_transformations", "transformation", (f"{_INTERFACES}.transformation:Transformation",)
)
PROPOSERS: ContributionKind[Proposer] = ContributionKind(
    "rpl_proposers", "proposer", (f"{_INTERFACES}.proposer:Proposer",)
)
EQUIVALENCE_CHECKS: ContributionKind[EquivalenceCheck] = ContributionKind(
    "rpl_equivalence_checks", "equivalence check", (f"{_INTERFACES}.equivalence:EquivalenceCheck",)
)

METRICS: ContributionKind[Metric] = ContributionKind(
    "rpl_metrics", "metric", (f"{_INTERFACES}.metric:Metric",)
)

#: In the order of the hooks above.
KINDS: tuple[ContributionKind[Any], ...] = (
    BUILDERS,
    TRANSFORMATIONS,
    PROPOSERS,
    EQUIVALENCE_CHECKS,
    METRICS,
)
