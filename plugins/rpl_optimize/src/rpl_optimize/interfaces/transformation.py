"""Transformations propose edits of kernel source; the optimizer applies, guards and measures them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from rpl_core.model.device import Architecture
from rpl_core.values import frozen
from rpl_optimize.interfaces.source_reading import SourceReading


@frozen
class Edit:
    """Replace the bytes ``[begin, end)`` of the source by ``replacement``."""

    begin: int
    end: int
    replacement: bytes


@frozen
class GuardVerdict:
    """What one guard says about a candidate; a refusal names the line and the reason.

    ``asks``: it passes, and yet something got worse that only a measurement can weigh (registers, LDS).
    """

    guard: str
    passed: bool
    reason: str
    line: int | None = None
    asks: bool = False


@frozen
class Evidence:
    """What the documents of a run say for one candidate.

    ``expected_gain`` is the part of the application's time that the change may save, at least and at most,
    each from 0 to 1; ``None`` where the documents don't bound it. ``facts`` are the named values it rests on.
    ``preference`` orders candidates of one transformation that may gain the same, smallest first.
    """

    expected_gain: tuple[float, float] | None = None
    facts: Mapping[str, float | str | None] = MappingProxyType({})
    preference: int = 0


@frozen
class Screening:
    """What a look at one candidate before its build says, or why there was nothing to look at."""

    verdicts: tuple[GuardVerdict, ...] = ()
    unavailable: str | None = None


@frozen
class EditCandidate:
    """A proposed change. ``id`` is stable for equal input; edits must not overlap.

    ``changes_loop`` says that a loop of the kernel's machine code must come out different; a build in which
    none did is refused. ``workgroup_limit`` says that the edit lowers the largest workgroup that the kernel
    can be launched with to this many work-items; without it a build that does so is refused. ``lds_growth``
    says that its static LDS grows by at most so many bytes; without it growth is refused. ``evidence`` is
    filled in by a proposer that ranked the candidate by it. ``declares`` says what the edit changes, besides
    which nothing may mean anything else; without it the body of the kernel may be rewritten. Candidates of a
    transformation with the same ``alternatives`` change one thing in different ways.
    """

    id: str
    kernel: str | None
    line: int
    summary: str
    edits: tuple[Edit, ...]
    guards: tuple[GuardVerdict, ...] = ()
    changes_loop: bool = False
    workgroup_limit: int | None = None
    lds_growth: int | None = None
    evidence: Evidence | None = None
    declares: tuple[DeclaredChange, ...] = ()
    alternatives: str | None = None

    @property
    def allowed(self) -> bool:
        return all(guard.passed for guard in self.guards)


@frozen
class KernelSource:
    """One source file as bytes. ``kernel`` limits proposals to one kernel by name.

    ``architecture`` is what the installed plugins know of the GPU that the program ran on. ``reading`` says
    what the user's compiler can prove of the text; without one (``None``) nothing is proven.
    ``recorded_block`` is the block size in x, y and z that the profile has for ``kernel``; another launch or
    input may have more.
    """

    path: str
    text: bytes
    kernel: str | None = None
    architecture: Architecture | None = attrs.field(default=None, eq=False, repr=False)
    reading: SourceReading | None = attrs.field(default=None, eq=False, repr=False)
    recorded_block: tuple[int, int, int] | None = attrs.field(default=None, eq=False, repr=False)


class Transformation(ABC):
    """One kind of source-to-source change."""

    name: str
    summary: str
    suffixes: tuple[str, ...] = (".cu", ".hip", ".cpp")

    @abstractmethod
    def propose(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        """All candidates in the file, refused ones included with their guard verdicts.

        Reads nothing but ``source``, and runs nothing but what ``source.reading`` asks the compiler.
        """

    def controls(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        """Deliberately wrong versions of ``source.kernel``, to see whether an equivalence check notices.

        Their ids are ``empty`` (the kernel does nothing) and ``broken`` (it computes something else). None
        where the kernel can't be edited so.
        """
        _ = source
        return ()

    def evidence(
        self, source: KernelSource, candidates: tuple[EditCandidate, ...], documents: Mapping[str, Any]
    ) -> Mapping[str, Evidence]:
        """What speaks for ``candidates`` (all of ``propose(source)``), by id; some may be left out.

        ``documents`` maps names of documents ("profile", ...) to plain JSON values; any may be missing.
        """
        _ = (source, candidates, documents)
        return {}

    def screen(
        self, source: KernelSource, candidate: EditCandidate, documents: Mapping[str, Any]
    ) -> Screening:
        """Further verdicts on a candidate of this transformation that is about to be proposed.

        May run a compiler in a scratch directory. What is refused here costs the user no trial.
        """
        _ = (source, candidate, documents)
        return Screening()

    def invariance(self, source: KernelSource, after: bytes) -> tuple[GuardVerdict, ...]:
        """Whether ``after`` changes nothing in ``source`` but what this transformation means to change.

        The optimizer asks about the edits that this transformation proposes. What every edit has to keep is
        judged by the user's compiler (``rpl_optimize.source_meaning``). None where the kernel is not found in
        ``source``.
        """
        _ = (source, after)
        return ()


# What a transformation declares that its edit changes, besides which everything must mean the same.
#
# An edit that declares nothing may rewrite the body of its kernel, as a language model does, but not its
# head. One that declares something may change nothing else: the judge (``rpl_optimize.source_meaning``)
# compares the rest of the function node by node, as the user's compiler understands it.


class DeclaredChange:
    """One of the changes below; the judge knows no others."""

    __slots__ = ()


@frozen
class LoopHints(DeclaredChange):
    """``count`` loops of one function get a hint (``#pragma unroll``, ``_Pragma``); 0: hints change only."""

    count: int = 1


@frozen
class LaunchBounds(DeclaredChange):
    """Launch bounds become ``threads``, and ``blocks`` (HIP: waves per SIMD) where that is given."""

    threads: int
    blocks: int | None = None


@frozen
class RestrictedParameter(DeclaredChange):
    """The pointer parameter ``name`` gets ``__restrict__``."""

    name: str


@frozen
class StreamedStores(DeclaredChange):
    """``count`` assignments to elements become ``__builtin_nontemporal_store`` of the same value."""

    count: int


@frozen
class ShuffledReduction(DeclaredChange):
    """The last steps of the reduction whose ``for`` begins at byte ``begin`` go from lane to lane.

    The judge proves the loop itself and knows the only text that may take its place
    (``SourceReading.tree_reductions``). On the ways through the machine code fewer barriers may stand then,
    by those of the steps, if values are handed from lane to lane in their place.
    """

    begin: int


@frozen
class SeveralBlocks(DeclaredChange):
    """The first blocks of the grid do the work of ``count`` each, in turn; the rest ends at once.

    The judge proves what it takes (``SourceReading.block_work``) and knows the only text that does it. In the
    machine code all may come behind each other then, and a path without work passes no barrier.
    """

    count: int


@frozen
class ResizedArray(DeclaredChange):
    """The array variable ``name``, declared in the body, gets larger extents.

    The judge proves that nothing depends on where its rows lie (``SourceReading.used_by_element``); ``block``
    says how many work-items every launch has at most in x, y and z, where that is known.
    """

    name: str
    block: tuple[int, ...] | None = None


#: The guard on such an edit, and what patience counts them under.
TUNED_CONSTANTS: Final = "tuned-constants"


@frozen
class TunedConstants(DeclaredChange):
    """Constants of ``SourceReading.constants`` get other values, by name; nothing else changes.

    They stand outside of any function, or in one of the host, and launches follow them. So the judge looks at
    the whole unit: it needs nobody's promise, and whoever proposes may declare it, without an owner.
    """

    values: tuple[tuple[str, int], ...]
