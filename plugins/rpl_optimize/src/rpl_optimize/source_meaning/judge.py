"""Judge an edit by what the user's compiler makes of it. Every candidate of every transformation comes here.

::

    front_end = front_end_of(baseline_build.commands, source, place)       # or a text: why there is none
    judge = MeaningJudge(front_end, text)                                  # once per version to beat
    meaning = judge.judge(after, candidate.declares)                       # GuardVerdicts, mangled names

How a transformation says what it changes: ``EditCandidate(..., declares=(LoopHints(),))`` with values of
``rpl_optimize.interfaces.transformation``. Without any, the body of the one kernel may be rewritten and its
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

import re
from collections.abc import Iterator
from typing import get_args

import attrs

from rpl_core.values import frozen
from rpl_optimize.interfaces.transformation import (
    DeclaredChange,
    GuardVerdict,
    LaunchBounds,
    LoopHints,
    ResizedArray,
    SeveralBlocks,
    ShuffledReduction,
    StreamedStores,
)
from rpl_optimize.source_meaning.declaration import Difference, differences, hints
from rpl_optimize.source_meaning.effects import Effects, Step, moved_accesses
from rpl_optimize.source_meaning.front_end import (
    FrontEnd,
    NotJudgedError,
    Preamble,
    Preprocessed,
    Side,
    asks_when_and_where,
    directives,
    line_directive,
    preprocess,
    shown_line,
)
from rpl_optimize.source_meaning.functions import FUNCTIONS, canonical, digest, events_of, is_kernel
from rpl_optimize.source_meaning.reading import CompilerReading, element_uses
from rpl_optimize.source_meaning.reductions import exchanges_in, may_reorder, tree_reductions, without_loop
from rpl_optimize.source_meaning.streams import with_assignments
from rpl_optimize.source_meaning.syntax_dump import Node
from rpl_optimize.source_meaning.unit import Original, OwnDeclaration, Unit, read
from rpl_optimize.source_meaning.value_ranges import ValueRanges, below

# Where an edit is: the one function that it lies in, before and after.


_LINE = re.compile(rb"\r?\n#line \d+")


@frozen
class Span:
    """Bytes of the function: ``[begin, end)`` of the original, ``[begin, new_end)`` of the edited text."""

    begin: int
    end: int
    new_end: int


def span_of(unit: Unit, before: bytes, after: bytes) -> Span | None:
    """The innermost function of ``before`` with everything that differs; ``None`` where that leaves it.

    A ``#line`` right behind the function that keeps the numbers of the lines that follow is no difference.
    """
    first = _common(before, after)
    functions = [one for one in unit.own if one.kind in FUNCTIONS and not one.inside]
    around = [one for one in functions if one.begin <= first <= one.end and not one.macro]
    for one in sorted(around, key=lambda one: one.end - one.begin):
        for kept in (line_directive(before, one.end), b""):
            rest = kept + before[one.end :]
            if after.endswith(rest) and len(after) - len(rest) > one.begin:
                return Span(one.begin, one.end, len(after) - len(rest))
    return None


def versions(unit: Unit, begin: int, end: int) -> list[OwnDeclaration]:
    """Declarations of exactly this extent: a function, or a template's pattern and its instances."""
    return [one for one in unit.own if one.kind in FUNCTIONS and (one.begin, one.end) == (begin, end)]


def strangers(unit: Unit, begin: int, end: int) -> list[OwnDeclaration]:
    """What else begins between these bytes and is not part of the function."""
    own = [one for one in unit.own if not one.inside and begin <= one.begin < end]
    return [one for one in own if (one.begin, one.end) != (begin, end) and not _encloses(one, begin, end)]


def _encloses(one: OwnDeclaration, begin: int, end: int) -> bool:
    """The template's own declaration, or a namespace that begins with it."""
    return one.begin <= begin and one.end >= end


def _common(before: bytes, after: bytes) -> int:
    """How many bytes are equal from the beginning."""
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[:middle] == after[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


# Whether an edit says the same words, so that each still means what it meant.


#: What a declared change writes: hints for loops, launch bounds.
_HINT_WORDS = re.compile(rb'\b_Pragma\s*\(\s*"\s*(?:nounroll|unroll(?:\s+\d+)?)\s*"\s*\)')
_BOUND_WORDS = re.compile(rb"\b__launch_bounds__\s*\([\s\d,]*\)")
#: What these write may be a macro of somebody, so the preprocessor is asked about the rest of the file.
_WITH_NAMES = (LaunchBounds, StreamedStores)
_WORD = re.compile(rb"[^\W\d]\w*|[^\x00-\x7f]")


def same_words(before: bytes, after: bytes, declared: tuple[DeclaredChange, ...]) -> bool:
    """Whether two texts of a function name the same things in the same order, but for declared words.

    Then a compiler that makes the same tree of both, types included, found the same declaration for each
    name: nobody has to follow the calls. As no directive differs, and no line comes or goes, the preprocessor
    makes of the text outside of the function what it made: no macro changed, none was used more often.
    """
    known = (LoopHints, LaunchBounds, ResizedArray, StreamedStores)
    if not all(isinstance(change, known) for change in declared):
        return False
    kinds = {type(change) for change in declared}
    texts = (before, after)
    if LoopHints in kinds:
        texts = (_HINT_WORDS.sub(b"", before), _HINT_WORDS.sub(b"", after))
    if LaunchBounds in kinds:
        texts = (_BOUND_WORDS.sub(b"", texts[0]), _BOUND_WORDS.sub(b"", texts[1]))
    if StreamedStores in kinds:
        texts = (with_assignments(texts[0]), with_assignments(texts[1]))
    old, new = texts
    counted = (b"\n", b"\\", b"#", b"??", b'"', b"'", b"%:")
    return _WORD.findall(old) == _WORD.findall(new) and all(
        old.count(one) == new.count(one) for one in counted
    )


# One pass over original and edit, compared: the function's declarations, and what it does with
# others.


#: Nothing is known of the calls of a template that nobody instantiates.
NO_INSTANCE = "no instance of this template is compiled, so its calls are unknown"


@frozen(eq=False)
class Compared:
    """``before`` and ``after`` are the unit with either text; texts are those of the edited file."""

    span: Span
    before: Unit
    after: Unit
    text: bytes
    edited: bytes
    declared: tuple[DeclaredChange, ...]
    same_words: bool = False  # then the same tree has the same effects
    reordered: bool = False  # sums of the unit may be

    def names(self) -> tuple[str, ...]:
        """The linker's names of the function, one per instance of a template."""
        return tuple(sorted(str(node.get("mangledName", "")) for node in self._concrete(self._old())))

    def template(self) -> str | None:
        """The name of a template without any instance."""
        old = self._old()
        return str(old[0].get("name")) if old and not self._concrete(old) else None

    def differences(self) -> Iterator[Difference]:
        old, new = self._old(), self._new()
        alien = strangers(self.after, self.span.begin, self.span.new_end)
        if not new or alien:
            what = f"it also has a {alien[0].kind}" if alien else "it does not end where the function ended"
            yield Difference("declaration", f"the edit is not one complete function: {what}")
            return
        left, right = _by_key(self._concrete(old)), _by_key(self._concrete(new))
        if not left:
            yield Difference("judged", NO_INSTANCE)
        elif left.keys() != right.keys():
            yield Difference("declaration", "the function's name, type or template arguments changed")
        else:
            for key in left:
                yield from self._one(left[key], right[key])

    def _one(self, before: Node, after: Node) -> Iterator[Difference]:
        for change in self.declared:
            if isinstance(change, ShuffledReduction):
                yield from self._shuffled(before, after, change)
                before, after = (without_loop(node, change.begin)[0] for node in (before, after))
            if isinstance(change, SeveralBlocks):  # the text of the body is known, and what it does
                before, after = (_head_of(node) for node in (before, after))
        yield from differences(before, after, self.declared)
        for change in self.declared:
            if isinstance(change, ResizedArray):
                yield from self._unmoved(before, change)
        expected = sum(change.count for change in self.declared if isinstance(change, LoopHints))
        if self.declared and hints(after) - hints(before) != expected:
            found = hints(after) - hints(before)
            yield Difference("declared", f"the compiler sees {found} new hints, {expected} are declared")
        if not self.declared and not is_kernel(before):
            yield Difference("declaration", "only a declared change may touch a function that is no kernel")
        if self.same_words or any(isinstance(change, SeveralBlocks) for change in self.declared):
            return
        old, new = Effects(self.before, self.text), Effects(self.after, self.edited)
        different = list(
            _cooperation(
                old.steps(tuple(events_of(before)), own_text=True),
                new.steps(tuple(events_of(after)), own_text=True),
            )
        )
        yield from different
        if not different and not self.declared:
            moved = moved_accesses((old, before), (new, after))
            yield from (Difference("cooperation", what) for what in moved)

    def _unmoved(self, function: Node, change: ResizedArray) -> Iterator[Difference]:
        """Whether anything depends on where the rows of a resized array lie."""
        ranges = ValueRanges(function, self.text, self.before.dump.variable, change.block)
        for node, _ in below(function):
            if node.get("kind") == "VarDecl" and node.get("name") == change.name:
                problem = element_uses(ranges, node)
                if problem is not None:
                    yield Difference("declared", problem)

    def _shuffled(self, before: Node, after: Node, change: ShuffledReduction) -> Iterator[Difference]:
        """Whether the loop is what can go from lane to lane, and the edit the one text that does it."""
        found = tree_reductions(self.before, self.text, str(before.get("name")), reordered=self.reordered)
        known = () if isinstance(found, str) else [one for one in found if one.begin == change.begin]
        if not known:
            why = found if isinstance(found, str) else "another loop"
            yield Difference("declared", f"no reduction whose last steps may be handed over: {why}")
            return
        expected = self.text
        for begin, end, new in reversed(known[0].edits):
            expected = expected[:begin] + new + expected[end:]
        if expected != self.edited:
            yield Difference("declared", "the text is another one than that of a handed over reduction")
        _, block = without_loop(after, change.begin)
        called = [self.after.function(one) for one in exchanges_in(block or {})]
        own = {one.node.get("id") for one in self.after.own}
        effects = Effects(self.after, self.edited)
        for one in called:
            steps = () if one is None else effects.steps(one.events)
            if not steps or any(step.orders for step in steps):
                yield Difference("declared", "what is called does more than to hand a value to a lane")
        if not called or own.intersection(exchanges_in(block or {})):
            yield Difference("declared", "no function of the compiler's headers hands the values over")

    def _old(self) -> list[Node]:
        return [one.node for one in versions(self.before, self.span.begin, self.span.end)]

    def _new(self) -> list[Node]:
        return [one.node for one in versions(self.after, self.span.begin, self.span.new_end) if not one.macro]

    def _concrete(self, nodes: list[Node]) -> list[Node]:
        """Without the pattern of a template, whose names are not resolved yet."""
        return [node for node in nodes if not _is_pattern(node)]


def _cooperation(before: tuple[Step, ...], after: tuple[Step, ...]) -> Iterator[Difference]:
    old, new = [step.compared for step in before], [step.compared for step in after]
    if old == new:
        return
    at = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))  # noqa: B905 - lengths may differ
    was = before[at].describe() if at < len(before) else "nothing"
    now = after[at].describe() if at < len(after) else "nothing"
    now = f"{now}, done otherwise" if now == was else now
    where = f"step {at + 1} of what it does with others"
    yield Difference("cooperation", f"{where} was {was}, is {now}")


def _head_of(function: Node) -> Node:
    """A function without its body."""
    inner = [part for part in function.get("inner", ()) if part.get("kind") != "CompoundStmt"]
    return {**function, "inner": inner}


def _is_pattern(node: Node) -> bool:
    """A template's own text has no linker's name."""
    return not node.get("mangledName")


def _by_key(nodes: list[Node]) -> dict[str, Node]:
    """By linker's name; type and template arguments are told apart by it."""
    return {str(node.get("mangledName")) or digest(canonical(node)): node for node in nodes}


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


@attrs.define(eq=False)
class MeaningJudge:
    """Judges edits of ``text``, which is read once. ``front_end`` as a text says why there is none."""

    front_end: FrontEnd | str
    text: bytes
    original: Original | None = attrs.field(default=None, init=False)
    _around: dict[tuple[Side, int], Preprocessed] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.front_end, str):
            self.original = Original(self.front_end, self.text)

    def judge(self, after: bytes, declared: tuple[DeclaredChange, ...] = ()) -> Meaning:
        """Verdicts of all guards, or the one that ended the judgement."""
        if self.original is None:
            return Meaning((GuardVerdict("judged", False, str(self.front_end)),))
        try:
            preamble = self.original.preamble() if declared else None
            return self._judged(self.original, after, declared, preamble)
        except NotJudgedError as error:
            return Meaning((GuardVerdict("judged", False, str(error)),))

    def _judged(
        self,
        original: Original,
        after: bytes,
        declared: tuple[DeclaredChange, ...],
        preamble: Preamble | None,
    ) -> Meaning:
        """Behind the preamble, where the edit has the words of the original; else by the whole unit."""
        unit = original.behind(preamble, "device").unit
        span = span_of(unit, self.text, after)
        old, new = self.text[: 0 if span is None else span.end], after[: 0 if span is None else span.new_end]
        old, new = (text[0 if span is None else span.begin :] for text in (old, new))
        several = next((one for one in declared if isinstance(one, SeveralBlocks)), None)
        known = several is not None or same_words(old, new, declared)
        if preamble is not None and (span is None or not known):
            return self._judged(original, after, declared, None)
        if span is None:
            raise NotJudgedError("what was changed lies in no single function of the source")
        line = shown_line(after, span.begin)
        added = directives(new) - directives(old)
        if added:
            what = f"a directive was added: {min(added).decode('utf-8', 'replace')[:60]!r}"
            return Meaning((GuardVerdict("directives", False, what, line),))
        asks = asks_when_and_where(new) - asks_when_and_where(old)
        if asks:
            what = f"{min(asks).decode()} tells when or where it is compiled"
            return Meaning((GuardVerdict("directives", False, what, line),))
        if several is not None:
            why = self._not_several(
                original, str(versions(unit, span.begin, span.end)[0].node.get("name")), several, after
            )
            if why is not None or len(declared) > 1:
                return Meaning(
                    (GuardVerdict("declared", False, why or "it declares more than the blocks", line),)
                )
        return self._compare(original, span, after, declared, preamble)

    def _not_several(
        self, original: Original, kernel: str, change: SeveralBlocks, after: bytes
    ) -> str | None:
        """Why one block can't do the work of several, or the edit is not the one text that does it."""
        work = CompilerReading(original.front_end, self.text, original).block_work(kernel)
        if isinstance(work, str):
            return f"no block may do the work of several: {work}"
        expected = self.text
        for begin, end, new in reversed(work.several(change.count)):
            expected = expected[:begin] + new + expected[end:]
        if change.count < 2 or expected != after:
            return "the text is another one than that of a block with the work of several"
        return None

    def _compare(
        self,
        original: Original,
        span: Span,
        after: bytes,
        declared: tuple[DeclaredChange, ...],
        preamble: Preamble | None,
    ) -> Meaning:
        differences: list[Difference] = []
        names: tuple[str, ...] = ()
        template: str | None = None
        reordered = any(isinstance(one, ShuffledReduction) for one in declared) and may_reorder(original)
        with original.front_end.reading(after, preamble) as edited:
            for side in get_args(Side):
                before, now = original.behind(preamble, side), read(edited, side)
                if now.warnings != before.warnings:
                    new = [text for text in now.warnings if text not in before.warnings]
                    what = new[0] if new else "one thing less than before"
                    differences.append(Difference("judged", f"the compiler warns ({side} pass) of {what}"))
                compared = Compared(
                    span,
                    before.unit,
                    now.unit,
                    self.text,
                    after,
                    declared,
                    same_words=preamble is not None,
                    reordered=reordered,
                )
                differences += compared.differences()
                template = template or compared.template()
                names = names or compared.names()  # the device's: the host has a stub in the kernel's place
                if preamble is None or any(isinstance(one, _WITH_NAMES) for one in declared):
                    differences += self._preprocessed(original.front_end, side, span, after)
                if differences:
                    break
        line = shown_line(after, span.begin)
        return Meaning(tuple(_verdicts(differences, line, declared=bool(declared))), names, template)

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


def _verdicts(differences: list[Difference], line: int, *, declared: bool) -> Iterator[GuardVerdict]:
    refused = {one.guard: one.reason for one in reversed(differences)}
    for guard, passed in _PASSED.items():
        if guard in refused:
            yield GuardVerdict(guard, False, refused[guard], line)
        elif guard != "declared" or declared:
            yield GuardVerdict(guard, True, passed)
