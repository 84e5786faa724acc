"""What checks are asked about, and the wrong versions of a kernel that they must notice to be believed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from rpl_core.errors import InterruptedRunError, RplError
from rpl_core.values import frozen
from rpl_optimize.interfaces.builder import BuildFailure
from rpl_optimize.transform.ask import able_to_read, ask
from rpl_optimize.transform.edits import apply_edits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rpl_optimize.build.model import BuiltProgram, ProgramBuilder
    from rpl_optimize.interfaces.proposer import InstalledTransformation
    from rpl_optimize.interfaces.transformation import KernelSource


@frozen
class EquivalenceSubject:
    """One candidate beside its baseline.

    ``source`` is the text that ``baseline`` was built from, with the name of the changed kernel;
    ``command`` is the user's whole command line, ``original`` the source whose host code all builds have;
    ``None``: that of ``source``.
    """

    source: KernelSource
    baseline: BuiltProgram
    candidate: BuiltProgram
    command: tuple[str, ...]
    original: bytes | None = None


ControlName = Literal["empty", "broken"]
#: In the order in which they are shown: a check that misses the first needs no second.
CONTROLS: tuple[ControlName, ...] = ("empty", "broken")


@frozen
class NoControl:
    """Why there is no program to show."""

    reason: str


class ControlBuilds:
    """Makes each control of a kernel once; ``build`` gives the same answer for the same baseline."""

    def __init__(self, transformations: Sequence[InstalledTransformation], builder: ProgramBuilder) -> None:
        self._transformations = transformations
        self._builder = builder
        self._made: dict[tuple[str, str | None, str], BuiltProgram | NoControl] = {}

    def build(
        self, control: ControlName, subject: EquivalenceSubject, directory: Path
    ) -> BuiltProgram | NoControl:
        """The wrong program, built in ``directory`` (which must not exist) unless it was built before.

        Raises ``InterruptedRunError``.
        """
        key = (subject.baseline.binary_sha256, subject.source.kernel, control)
        kept = self._made.get(key)
        if isinstance(kept, NoControl) or (kept is not None and kept.binary.is_file()):
            return kept
        self._made[key] = made = self._make(control, subject, directory)
        return made

    def _make(
        self, control: ControlName, subject: EquivalenceSubject, directory: Path
    ) -> BuiltProgram | NoControl:
        text = self._text_of(control, subject.source)
        if isinstance(text, NoControl):
            return text
        try:
            directory.mkdir(parents=True)
            built = self._builder.build(text, directory, subject.original)
        except InterruptedRunError:
            raise
        except (RplError, OSError) as error:
            return NoControl(f"the {control} kernel can't be built: {error}")
        if isinstance(built, BuildFailure):
            return NoControl(f"the {control} kernel does not build: {built.reason}")
        if built.host_code is not None and not built.host_code.passed:
            return NoControl(f"the {control} kernel is refused: {built.host_code.reason}")
        if built.code_sha256 == subject.baseline.code_sha256:
            return NoControl(f"the {control} kernel compiles to the baseline's own code")
        return built

    def _text_of(self, control: ControlName, source: KernelSource) -> bytes | NoControl:
        """The source with the kernel made wrong by the first transformation that can."""
        problems = []
        for one in able_to_read(source, self._transformations):
            answer = ask(one, "controls", partial(_changed_by, one, control, source))
            if isinstance(answer, bytes):
                return answer
            if answer is not None:
                problems.append(answer.fact)
        why = f": {'; '.join(problems)}" if problems else ""
        return NoControl(f"no plugin can make the {control} version of kernel {source.kernel}{why}")


def _changed_by(one: InstalledTransformation, control: ControlName, source: KernelSource) -> bytes | None:
    """The source as the transformation's control makes it, if it has one that changes something."""
    for offered in one.transformation.controls(source):
        if offered.kernel == source.kernel is not None and offered.id == control and offered.edits:
            changed = apply_edits(source.text, offered.edits)
            if changed == source.text:
                raise ValueError("the edits change nothing")
            return changed
    return None
