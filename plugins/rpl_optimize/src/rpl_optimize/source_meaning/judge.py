"""Judge an edit by what the user's compiler makes of it. Every candidate of every transformation comes here.

::

    front_end = front_end_of(baseline_build.commands, source, place)       # or a text: why there is none
    judge = MeaningJudge(front_end, text)                                  # once per version to beat
    meaning = judge.judge(after, candidate.declares)                       # GuardVerdicts, mangled names

How a transformation says what it changes: ``EditCandidate(..., declares=(LoopHints(),))`` with values of
``rpl_optimize.interfaces.declared_change``. Without any, the body of the one kernel may be rewritten and its
head may not; with some, nothing but these may differ, in the compiler's own tree. A hint for a loop may also
stand in a ``__device__`` function of the file.

The guards, each with a verdict:

``judged``
    A compiler is at hand, reads original and edit, and says nothing new about the edit. Where none is, or it
    fails, this guard refuses and says why: an edit that nobody understood is not built.
``directives``
    No directive is added but hints for loops, and nothing that tells the time or place of the compilation
    (``__TIME__``, ``__COUNTER__``, ``__builtin_LINE``); looked at before anything is compiled.
``outside``
    Every byte outside of the function is as before, and so is what the preprocessor makes of it.
``declaration``
    The edit is one complete function of the same name, linker's name, types and qualifiers.
``attributes``
    No attribute is added, lost or changed, and no pointer gets ``__restrict__``, which nobody could check.
``cooperation``
    Barriers, fences, atomics, exchange between lanes, volatile accesses, assembly, and calls that may do any
    of this or that nobody can see into: the same, in the same order, below the same control statements.
    Calls are followed to their declarations, in headers too.
``declared``
    What the transformation declared is all that changed.

Device and host pass have to agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

import attrs

from rpl_core.values import frozen
from rpl_optimize.interfaces.transformation import GuardVerdict
from rpl_optimize.source_meaning.compared import Compared
from rpl_optimize.source_meaning.declaration import Difference
from rpl_optimize.source_meaning.front_end import FrontEnd, Side
from rpl_optimize.source_meaning.line_numbers import shown_line
from rpl_optimize.source_meaning.not_judged import NotJudgedError
from rpl_optimize.source_meaning.preprocessed import (
    Preprocessed,
    asks_when_and_where,
    directives,
    preprocess,
)
from rpl_optimize.source_meaning.span import Span, require_span
from rpl_optimize.source_meaning.unit import Unit, read_unit

if TYPE_CHECKING:
    from rpl_optimize.interfaces.declared_change import DeclaredChange
    from rpl_optimize.source_meaning.front_end import Pass

__all__ = ["Meaning", "MeaningJudge"]

_PASSED = {
    "judged": "the compiler reads the edit as it read the original",
    "directives": "no directive was added",
    "outside": "everything outside of the function is as before",
    "declaration": "one complete function of the same name and type",
    "attributes": "attributes are as before",
    "cooperation": "what work-items do together happens in the same order under the same conditions",
    "declared": "nothing but what was declared changed",
}


@frozen
class Meaning:
    """``mangled`` are the linker's names of what the edit changes, one per instance of a template.

    ``template`` is the name of one that the unit makes no instance of: not judged, but for want of that only.
    """

    verdicts: tuple[GuardVerdict, ...]
    mangled: tuple[str, ...] = ()
    template: str | None = None

    @property
    def passed(self) -> bool:
        return all(verdict.passed for verdict in self.verdicts)


@frozen(eq=False)
class _Reading:
    unit: Unit
    warnings: tuple[str, ...]


@attrs.define(eq=False)
class MeaningJudge:
    """Judges edits of ``text``, which is read once. ``front_end`` as a text says why there is none."""

    front_end: FrontEnd | str
    text: bytes
    _original: dict[Side, _Reading] = attrs.field(factory=dict, init=False)
    _around: dict[tuple[Side, int], Preprocessed] = attrs.field(factory=dict, init=False)

    def judge(self, after: bytes, declared: tuple[DeclaredChange, ...] = ()) -> Meaning:
        """Verdicts of all guards, or the one that ended the judgement."""
        if isinstance(self.front_end, str):
            return Meaning((GuardVerdict("judged", False, self.front_end),))
        try:
            with self.front_end.reading(self.text) as original:
                span = require_span(self._before(original, "device").unit, self.text, after)
                added = directives(after[span.begin : span.new_end])
                added -= directives(self.text[span.begin : span.end])
                if added:
                    what = f"a directive was added: {min(added).decode('utf-8', 'replace')[:60]!r}"
                    return Meaning((GuardVerdict("directives", False, what, shown_line(after, span.begin)),))
                asks = asks_when_and_where(after[span.begin : span.new_end])
                asks -= asks_when_and_where(self.text[span.begin : span.end])
                if asks:
                    what = f"{min(asks).decode()} tells when or where it is compiled"
                    return Meaning((GuardVerdict("directives", False, what, shown_line(after, span.begin)),))
                with self.front_end.reading(after) as edited:
                    return self._compare(original, edited, span, after, declared)
        except NotJudgedError as error:
            return Meaning((GuardVerdict("judged", False, str(error)),))

    def _compare(
        self, original: Pass, edited: Pass, span: Span, after: bytes, declared: tuple[DeclaredChange, ...]
    ) -> Meaning:
        differences: list[Difference] = []
        names: tuple[str, ...] = ()
        template: str | None = None
        for side in get_args(Side):
            before, now = self._before(original, side), _read(edited, side)
            if now.warnings != before.warnings:
                new = [text for text in now.warnings if text not in before.warnings]
                what = new[0] if new else "one thing less than before"
                differences.append(Difference("judged", f"the compiler warns ({side} pass) of {what}"))
            compared = Compared(span, before.unit, now.unit, self.text, after, declared)
            differences += compared.differences()
            template = template or compared.template()
            names = names or compared.names()  # the device's: the host has a stub in the kernel's place
            differences += self._preprocessed(edited.front_end, side, span, after)
            if differences:
                break
        line = shown_line(after, span.begin)
        return Meaning(tuple(_verdicts(differences, line, declared=bool(declared))), names, template)

    def _before(self, original: Pass, side: Side) -> _Reading:
        if side not in self._original:
            self._original[side] = _read(original, side)
        return self._original[side]

    def _preprocessed(
        self, front_end: FrontEnd, side: Side, span: Span, after: bytes
    ) -> Iterator[Difference]:
        key = (side, span.begin)
        if key not in self._around:
            self._around[key] = preprocess(front_end, side, self.text, span.begin, span.end)
        old = self._around[key]
        new = preprocess(front_end, side, after, span.begin, span.new_end)
        if (old.before, old.behind) != (new.before, new.behind):
            yield Difference("outside", f"what the preprocessor makes of other lines changed ({side} pass)")
        if new.pragmas - old.pragmas:
            pragma = min(new.pragmas - old.pragmas).decode("utf-8", "replace")
            yield Difference("directives", f"a pragma was added: {pragma[:60]!r}")


def _read(one: Pass, side: Side) -> _Reading:
    unit = read_unit(one, side)
    return _Reading(unit, one.messages(side))


def _verdicts(differences: list[Difference], line: int, *, declared: bool) -> Iterator[GuardVerdict]:
    refused = {one.guard: one.reason for one in reversed(differences)}
    for guard, passed in _PASSED.items():
        if guard in refused:
            yield GuardVerdict(guard, False, refused[guard], line)
        elif guard != "declared" or declared:
            yield GuardVerdict(guard, True, passed)
