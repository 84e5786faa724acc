"""Equivalence checks decide whether a changed program still computes the same."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from pathlib import Path

import attrs

from rpl_core.interfaces.options import Options
from rpl_core.model.metric import Origin
from rpl_core.values import frozen


class EquivalenceVerdict(str, Enum):
    EQUAL = "equal"
    DIFFERENT = "different"
    BLIND = "blind"  # the check would also have passed a broken kernel
    NOT_RUN = "not_run"


@frozen
class EquivalenceOptions:
    """What the user said about checking results.

    ``validate`` are commands that exit 0 when the program is right; ``outputs`` are files that a run of
    the program writes, relative to its working directory; ``-`` is its standard output. Numbers may differ
    by ``absolute + relative * |baseline|``; both 0 asks for equal bytes. ``plugins`` are the values of the
    command's options that plugins brought (``rpl_options``).
    """

    validate: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    relative: float = 0.0
    absolute: float = 0.0
    time_limit_s: float = 600.0
    plugins: Options = attrs.field(factory=Options, eq=False)


@frozen
class EquivalenceRequest:
    """Two builds of one program in separate scratch directories, with the user's own command line.

    A check may write into both directories and nowhere else; what it leaves in the baseline's is there
    again when it is asked about the next candidate. ``baseline_command`` and ``candidate_command`` are
    ``command`` with the built program in its place; ``working_directory`` is the user's, ``None`` for rpl's.
    ``same_launches``: the candidate launches its kernels as the baseline does. A check that runs recorded
    launches has nothing to compare where it does not. ``same_barriers``: its waves wait for each other as
    those of the baseline; where the edit declares that they do not, results and races still count.
    """

    baseline_directory: Path
    candidate_directory: Path
    command: tuple[str, ...]
    baseline_command: tuple[str, ...] = ()
    candidate_command: tuple[str, ...] = ()
    options: EquivalenceOptions = EquivalenceOptions()
    baseline_program: Path | None = None
    candidate_program: Path | None = None
    working_directory: Path | None = None
    same_launches: bool = True
    same_barriers: bool = True


@frozen
class EquivalenceReport:
    """``crashed``: ``DIFFERENT`` because the candidate crashed or hung, so that no result was compared."""

    verdict: EquivalenceVerdict
    evidence: str
    crashed: bool = False


@frozen
class KernelPairs:
    """Times of one kernel that ran alone, in both builds: ``(baseline, candidate)`` of each pair, in ns.

    ``origin`` is what they are; only measured ones count. ``problem`` says why there are none, or why they
    mean nothing. ``different``: behind the last pair the two did not compute the same any more.
    """

    pairs: tuple[tuple[float, float], ...] = ()
    origin: Origin | None = None
    problem: str | None = None
    different: bool = False


class EquivalenceCheck(ABC):
    """Compares the observable results of two builds."""

    name: str
    summary: str

    @abstractmethod
    def check(self, request: EquivalenceRequest) -> EquivalenceReport:
        """Run both builds as needed and compare. ``NOT_RUN`` when it has nothing to compare with."""

    def time_kernel(
        self,
        request: EquivalenceRequest,  # noqa: ARG002 - for those that override it
        candidate_first: tuple[bool, ...],  # noqa: ARG002
    ) -> KernelPairs | None:
        """As many pairs of the kernel alone as there are entries, each in that order; ``None``: it runs none.

        Asked for candidates that it called equal, before the application is measured: a candidate that is
        no faster by these times is rejected, and one that is faster still has to show it in the application.
        Results are compared once more behind the last pair.
        """
        return None
