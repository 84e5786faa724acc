"""Transformations propose edits of kernel source; the core applies, guards and measures them."""

from __future__ import annotations

from abc import ABC, abstractmethod

import attrs


@attrs.frozen
class Edit:
    """Replace the bytes ``[begin, end)`` of the source by ``replacement``."""

    begin: int
    end: int
    replacement: bytes


@attrs.frozen
class GuardVerdict:
    """What one guard says about a candidate; a refusal names the line and the reason."""

    guard: str
    passed: bool
    reason: str
    line: int | None = None


@attrs.frozen
class EditCandidate:
    """A proposed change. ``id`` is stable for equal input; edits must not overlap.

    ``changes_loop`` says that a loop of the kernel's machine code must come out different; a build in which
    none did is refused.
    """

    id: str
    kernel: str | None
    line: int
    summary: str
    edits: tuple[Edit, ...]
    guards: tuple[GuardVerdict, ...] = ()
    changes_loop: bool = False

    @property
    def allowed(self) -> bool:
        return all(guard.passed for guard in self.guards)


@attrs.frozen
class KernelSource:
    """One source file as bytes. ``kernel`` limits proposals to one kernel by name."""

    path: str
    text: bytes
    kernel: str | None = None


class Transformation(ABC):
    """One kind of source-to-source change."""

    name: str
    summary: str
    suffixes: tuple[str, ...] = (".cu", ".hip", ".cpp")

    @abstractmethod
    def propose(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        """All candidates in the file, refused ones included with their guard verdicts.

        Reads nothing but ``source`` and runs nothing.
        """

    def controls(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        """Deliberately wrong versions of ``source.kernel``, to see whether an equivalence check notices.

        Their ids are ``empty`` (the kernel does nothing) and ``broken`` (it computes something else). None
        where the kernel can't be edited so.
        """
        _ = source
        return ()

    def invariance(self, source: KernelSource, after: bytes) -> tuple[GuardVerdict, ...]:
        """Whether ``after`` changes nothing but the body of ``source.kernel``, whoever made the edit.

        The optimizer asks about every candidate, so that no proposer vouches for itself alone. None where
        the kernel is not found in ``source``.
        """
        _ = (source, after)
        return ()
