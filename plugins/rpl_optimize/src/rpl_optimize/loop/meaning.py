"""The judge of what an edit means, for the version to beat and with the compiler of the user's own build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.errors import RplError
from rpl_optimize.build.default_build import CompilerBuilds
from rpl_optimize.build.template_build import OUTPUT, SOURCE, TemplateBuilder
from rpl_optimize.contracts.optimize import GuardPart
from rpl_optimize.source_meaning.front_end import front_end_of
from rpl_optimize.source_meaning.judge import MeaningJudge

if TYPE_CHECKING:
    from rpl_optimize.interfaces.builder import BuildRequest
    from rpl_optimize.interfaces.declared_change import DeclaredChange
    from rpl_optimize.loop.baseline import Baseline
    from rpl_optimize.source_meaning.front_end import FrontEnd


class SessionMeaning:
    """Judges edits of one version to beat, which is read once."""

    def __init__(self, request: BuildRequest, baseline: Baseline) -> None:
        self.baseline = baseline.number
        found = front_end_of(baseline.build.commands, request.source, request.place)
        if isinstance(found, str):
            found = _usual_front_end(request, found)
        self._unknown = found if isinstance(found, str) else None
        self._judge = MeaningJudge(found, baseline.text)

    def judge(self, after: bytes, declared: tuple[DeclaredChange, ...]) -> tuple[GuardPart, ...]:
        """The verdicts of all guards. Without a compiler nothing is known, and the edit is not built."""
        if self._unknown is not None:
            return (GuardPart(guard="judged", passed=None, reason=self._unknown),)
        verdicts = self._judge.judge(after, declared).verdicts
        return tuple(
            GuardPart(guard=v.guard, passed=v.passed, reason=v.reason, line=v.line) for v in verdicts
        )


def _usual_front_end(request: BuildRequest, why: str) -> FrontEnd | str:
    """The installed HIP compiler, where the project's own build does not show how it compiles."""
    try:
        builder = CompilerBuilds().builder(request)
    except RplError as error:
        return f"{why}; {error.fact}"
    if not isinstance(builder, TemplateBuilder):
        return why
    words = [str(request.source) if word == SOURCE else word for word in builder.words if word != OUTPUT]
    return front_end_of((tuple(words),), request.source, request.place)
