"""Proposers choose what the optimizer tries next: by rules, or by asking a language model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.interfaces.options import CommandOption, Options
from rpl_core.values import frozen
from rpl_optimize.interfaces.transformation import EditCandidate, KernelSource, Transformation

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rpl_core.interfaces.section import SectionOf
    from rpl_core.plugins.catalog import ContributionKind, NamedContributions

    Offered = Callable[[ContributionKind[Any]], NamedContributions[Any]]


def _say_nothing(_line: str) -> None:
    return None


def _offer_nothing(kind: ContributionKind[Any]) -> NamedContributions[Any]:
    from rpl_core.plugins.catalog import NamedContributions

    return NamedContributions(kind.noun, ())


@frozen
class Attempt:
    """An earlier proposal and why it was not kept."""

    summary: str
    verdict: str
    reason: str


@frozen
class InstalledTransformation:
    """A transformation with the name of the plugin that offers it."""

    plugin: str
    transformation: Transformation


@frozen
class InstalledProposer:
    """A proposer with the name of the plugin that offers it."""

    plugin: str
    proposer: Proposer


@frozen
class TriedOut:
    """What a candidate took in a few runs, for a search: less is better, and nothing is proven by it.

    ``value`` is the kernel's time over one run of the program in ``unit`` (or the figure of the model that
    candidates are compared by), ``None`` where ``problem`` says why there is none: refused by a guard, not
    built, other results, no time. ``built`` is false for one that guards refused before anything was built.
    ``ended``: the session's time is used up, so another candidate would not be tried out either.
    """

    value: float | None
    unit: str = "ms"
    problem: str | None = None
    built: bool = True
    ended: bool = False


@frozen
class ProposalRequest:
    """``documents`` maps document names ("profile", "roofline", "dag", "analysis") to plain JSON values.

    ``recorded_kernel`` is the target's name as the profiler displays it. ``binary`` is the built baseline,
    with its device code. ``directory`` is where a proposer may keep records of its own (exchanges with a
    model); ``options`` are its settings from the command line; ``note`` tells the user something.
    ``spent`` are transformations whose last candidates in a row (``--patience``) were not kept: it proposes
    no more of theirs. ``transformations`` are all that are installed, ``proposers`` those that join others.
    ``sections`` say more about kernels, from ``models``, the validated documents. ``offered`` gives what
    plugins offer of a ``ContributionKind``, for proposers with hooks of their own. ``plugin_options`` are
    the values of the command's options that plugins brought. ``try_out`` builds a candidate and runs it so
    many times, for proposers that search before they propose; ``None`` where nobody can. ``usual_run_s`` is
    what one run of the program takes.
    """

    source: KernelSource
    documents: Mapping[str, Any]
    attempts: tuple[Attempt, ...] = ()
    recorded_kernel: str | None = None
    binary: Path | None = None
    directory: Path | None = None
    options: Mapping[str, str] = attrs.field(factory=dict)
    note: Callable[[str], None] = attrs.field(default=_say_nothing, eq=False)
    transformations: tuple[InstalledTransformation, ...] = attrs.field(default=(), repr=False)
    spent: frozenset[str] = frozenset()
    proposers: tuple[InstalledProposer, ...] = attrs.field(default=(), repr=False)
    sections: tuple[SectionOf, ...] = attrs.field(default=(), repr=False)
    models: Mapping[str, BaseModel] = attrs.field(factory=dict, repr=False)
    offered: Offered = attrs.field(default=_offer_nothing, eq=False, repr=False)
    plugin_options: Options = attrs.field(factory=Options, eq=False, repr=False)
    try_out: Callable[[EditCandidate, int], TriedOut] | None = attrs.field(default=None, eq=False, repr=False)
    usual_run_s: float | None = None

    def told_cost(self, runs: int) -> str:
        """What ``runs`` of the program take, as words behind a plan; empty where nobody knows."""
        return "" if self.usual_run_s is None else f", some {self.usual_run_s * runs:.3g} s of runs"


class Proposer(ABC):
    """Orders or invents candidates for one kernel.

    ``joins``: the proposer ``ranked`` asks it as well and ranks its next candidate by the evidence that it
    carries. Not for one that asks somebody outside, costs money or wants options of its own.
    ``writes_code``: its candidates are texts of somebody whom nobody trusts, such as a language model. They
    are not built or run without a sandbox, unless the user says so.
    ``asked_by``: options of ``rpl optimize`` that switch this proposer on; without any of them it proposes
    nothing. One of them with a proposer that neither is this one nor ``asks_others`` (as ``ranked`` does) is
    refused, not ignored, and so is ``--proposer`` with this one's name and none of them.
    """

    name: str
    summary: str
    joins: bool = True
    writes_code: bool = False
    asks_others: bool = False
    asked_by: tuple[CommandOption[Any], ...] = ()

    @abstractmethod
    def propose(self, request: ProposalRequest) -> EditCandidate | None:
        """The next candidate, or ``None`` when there is nothing left to try for ``request.source.kernel``.

        A candidate without edits and with a refusing guard is a proposal that came to nothing.
        """

    def repair(self, request: ProposalRequest, failed: EditCandidate, problem: str) -> EditCandidate | None:
        """Another version of ``failed``, which did not get past ``problem`` (a guard, a compiler's error).

        ``None``: this proposer does not repair, or has used up its repair turns for this proposal.
        """
        _ = (request, failed, problem)
        return None
