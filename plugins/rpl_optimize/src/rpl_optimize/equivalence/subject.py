"""What the checks are asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from rpl_core.interfaces.transformation import KernelSource
    from rpl_optimize.build.model import BuiltProgram


@attrs.frozen
class EquivalenceSubject:
    """One candidate beside its baseline.

    ``source`` is the text that ``baseline`` was built from, with the name of the changed kernel;
    ``command`` is the user's whole command line.
    """

    source: KernelSource
    baseline: BuiltProgram
    candidate: BuiltProgram
    command: tuple[str, ...]
