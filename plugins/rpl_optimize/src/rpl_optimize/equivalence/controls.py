"""Wrong versions of the baseline's kernel, made by transformation plugins and built like the baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs

from rpl_core.errors import InterruptedRunError, RplError
from rpl_core.interfaces.transformation import EditCandidate
from rpl_core.plugins.boundary import plugin_boundary
from rpl_optimize.build.model import BuildFailure
from rpl_optimize.transform.edits import apply_edits, edits_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_core.interfaces.transformation import KernelSource, Transformation
    from rpl_core.plugins.catalog import NamedContributions
    from rpl_optimize.build.model import Build, Builder
    from rpl_optimize.equivalence.subject import EquivalenceSubject

ControlName = Literal["empty", "broken"]
#: In the order in which they are shown: a check that misses the first needs no second.
CONTROLS: tuple[ControlName, ...] = ("empty", "broken")


@attrs.frozen
class NoControl:
    """Why there is no program to show."""

    reason: str


class ControlBuilds:
    """Makes each control of a kernel once; ``build`` gives the same answer for the same baseline."""

    def __init__(self, transformations: NamedContributions[Transformation], builder: Builder) -> None:
        self._transformations = transformations
        self._builder = builder
        self._made: dict[tuple[str, str | None, str], Build | NoControl] = {}

    def build(self, control: ControlName, subject: EquivalenceSubject, directory: Path) -> Build | NoControl:
        """The wrong program, built in ``directory`` (which must not exist) unless it was built before.

        Raises ``InterruptedRunError``.
        """
        key = (subject.baseline.binary_sha256, subject.source.kernel, control)
        kept = self._made.get(key)
        if isinstance(kept, NoControl) or (kept is not None and kept.binary.is_file()):
            return kept
        self._made[key] = made = self._make(control, subject, directory)
        return made

    def _make(self, control: ControlName, subject: EquivalenceSubject, directory: Path) -> Build | NoControl:
        text = self._text_of(control, subject.source)
        if isinstance(text, NoControl):
            return text
        try:
            directory.mkdir(parents=True)
            built = self._builder.build(text, directory)
        except InterruptedRunError:
            raise
        except (RplError, OSError) as error:
            return NoControl(f"the {control} kernel can't be built: {error}")
        if isinstance(built, BuildFailure):
            return NoControl(f"the {control} kernel does not build: {built.reason}")
        if built.code_sha256 == subject.baseline.code_sha256:
            return NoControl(f"the {control} kernel compiles to the baseline's own code")
        return built

    def _text_of(self, control: ControlName, source: KernelSource) -> bytes | NoControl:
        """The source with the kernel made wrong by the first plugin that can."""
        problems = []
        for found in self._offers(source):
            if isinstance(found, NoControl):
                problems.append(found.reason)
                continue
            if found.id != control or not found.edits:
                continue
            problem = edits_problem(found.edits, len(source.text))
            changed = source.text if problem is not None else apply_edits(source.text, found.edits)
            if changed != source.text:
                return changed
            problems.append(problem or "the edits change nothing")
        why = f": {'; '.join(problems)}" if problems else ""
        return NoControl(f"no plugin can make the {control} version of kernel {source.kernel}{why}")

    def _offers(self, source: KernelSource) -> Iterator[EditCandidate | NoControl]:
        for name in self._transformations.names:
            transformation = self._transformations.get(name)
            if Path(source.path).suffix not in transformation.suffixes:
                continue
            try:
                with plugin_boundary(self._transformations.plugin_of(name), f"controls of {name}"):
                    offered = tuple(transformation.controls(source))
            except InterruptedRunError:
                raise
            except RplError as error:
                yield NoControl(error.fact)
                continue
            yield from (control for control in offered if _is_for(control, source))


def _is_for(control: object, source: KernelSource) -> bool:
    return isinstance(control, EditCandidate) and control.kernel == source.kernel is not None
