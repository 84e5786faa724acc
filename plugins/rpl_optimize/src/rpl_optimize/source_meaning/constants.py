"""Named integers of a source with other values: what depends on them, and when nobody has to look further.

Whoever tunes a kernel changes ``#define TILE 16`` or ``constexpr int BLOCK = 256;``. Such an edit reaches the
host's code, which no other edit may change. It is permitted where the compiler's trees of both texts differ
in nothing but values and extents that come from it, and where of the host only launches follow:

- grid, block and dynamic LDS of ``kernel<<<...>>>``, directly or by local variables that nothing else uses,
- no size of an array, no argument of a kernel, no condition, no output: a constant that says how much work
  there is would make a program faster that does less;
- and no number of the source that looks as if it had to agree (the same one, one less, its square) is left
  behind, such as ``(n + 255) / 256`` beside a ``BLOCK`` of 256.

In kernels anything may follow: there results are compared. Refused is what is too hard to see through: names
in ``#if``, types that depend on it, other kernels, other files that name it beside the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import get_args

import attrs

from rpl_core.errors import RplError
from rpl_core.files import read_regular
from rpl_core.values import frozen
from rpl_optimize.interfaces.source_reading import Constant
from rpl_optimize.interfaces.transformation import TUNED_CONSTANTS, GuardVerdict, TunedConstants
from rpl_optimize.source_meaning.front_end import NotJudgedError, Preamble, Side, shown_line
from rpl_optimize.source_meaning.functions import (
    BLOCK_BOUNDS,
    DROPPED,
    FUNCTIONS,
    canonical,
    children,
    is_kernel,
    type_name,
)
from rpl_optimize.source_meaning.launches import called_name, launches_of
from rpl_optimize.source_meaning.syntax_dump import Node
from rpl_optimize.source_meaning.unit import Original, OwnDeclaration, Unit, read
from rpl_optimize.source_meaning.unnamed_blocks import TELLING, block_obstacle, unnamed_blocks
from rpl_optimize.source_meaning.value_ranges import MOST_WORK_ITEMS, Parents, below, offset_of
from rpl_optimize.source_meaning.words import numbers_in, value_of

__all__ = ["Retuned", "constants_of", "judge_constants"]

#: Larger numbers are sizes of problems rather than of tiles and blocks (chosen).
_LARGEST = 4096
_MOST_CONSTANTS = 12
_MOST_FILES, _MOST_BYTES = 500, 1 << 20
_SOURCES = (".hip", ".cu", ".cuh", ".cpp", ".cc", ".cxx", ".h", ".hh", ".hpp", ".hxx")

# Definitions, as people write them.

_INTEGER = rb"(?P<digits>[1-9]\d{0,3})(?:[uUlL]{0,3})"
_MACRO = re.compile(
    rb"^[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)[ \t]+\(?[ \t]*"
    + _INTEGER
    + rb"[ \t]*\)?[ \t]*(?=//|/\*|\r?$)",
    re.MULTILINE,
)
_VARIABLE = re.compile(
    rb"\b(?P<words>(?:(?:static|inline|extern|constexpr|const)\s+)+)"
    rb"(?:std::)?(?:(?:unsigned|int|long|short|size_t|u?int(?:16|32|64)_t|auto)\s+)+"
    rb"(?P<name>\w+)\s*(?:=\s*|\{\s*)" + _INTEGER + rb"\s*\}?\s*;"
)
_CONDITION = re.compile(rb"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|undef)\b[^\n]*", re.MULTILINE)
_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)(?P<body>[^\n]*)", re.MULTILINE)
_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include\b[^\n]*?(?P<name>[\w.+-]+)[>\"]", re.MULTILINE)
_SPLICE = re.compile(rb"\\\r?\n")


def _definitions(text: bytes) -> dict[str, Constant]:
    """By name. One that is defined twice, or that a directive asks for, is refused."""
    found: dict[str, Constant] = {}
    spliced = _SPLICE.sub(b"  ", text)
    asked = b"\n".join(one[0] for one in _CONDITION.finditer(spliced))
    for match in sorted((*_MACRO.finditer(text), *_VARIABLE.finditer(text)), key=lambda one: one.start()):
        name = match["name"].decode()
        begin, end = match.span("digits")
        words = match.groupdict().get("words", b"")
        refused = None
        if name in found:
            refused = "it is defined more than once"
        elif re.search(rb"\b%s\b" % match["name"], asked):
            refused = "a directive asks for it (#if, #undef), so other code may take its place"
        elif b"inline" in words or b"extern" in words:
            refused = "other files can share it"
        elif _INCLUDE.search(text, end):
            refused = "a file that is included behind it may use it"
        line = shown_line(text, begin)
        found[name] = Constant(name, line, begin, end, int(match["digits"]), refused=refused)
    return found


def constants_of(original: Original, text: bytes, kernel: str) -> tuple[Constant, ...]:
    """Those that the kernel or its launches depend on. Raises ``NotJudgedError``."""
    found = []
    for side in get_args(Side):  # what does not compile as it stands tells of no constant
        original.behind(original.preamble(), side)
    named = list(_definitions(text).values())[:_MOST_CONSTANTS]
    used = (one for one in named if len(re.findall(rb"\b%s\b" % one.name.encode(), text)) > 1)
    for one in (*used, *unnamed_blocks(_host_of(original), text, kernel).values()):
        if one.value > _LARGEST:
            continue
        if one.refused is not None:
            found.append(one)
            continue
        judged = _probed(original, text, one, kernel)
        if judged.refused is not None:
            found.append(attrs.evolve(one, refused=judged.refused))
        elif judged.concerns_kernel:
            found.append(attrs.evolve(one, changes_launches=judged.changes_launches))
    return tuple(found)


def _host_of(original: Original) -> Unit:
    return original.behind(original.preamble(), "host").unit


def _with_values(text: bytes, values: Iterable[tuple[Constant, int]]) -> bytes:
    for begin, end, digits in sorted((p for one, value in values for p in one.written(value)), reverse=True):
        text = text[:begin] + digits + text[end:]
    return text


def _probed(original: Original, text: bytes, one: Constant, kernel: str) -> Retuned:
    """With another value in its place: twice as much, or half where that does not compile."""
    problem = "it has no other value"
    for value in (one.value * 2, one.value // 2):
        if not 1 <= value <= MOST_WORK_ITEMS:
            continue
        after = _with_values(text, ((one, value),))
        try:
            changes = TunedConstants(((one.name, value),))
            return judge_constants(original, text, after, changes, kernel, probe=True)
        except NotJudgedError as error:
            problem = f"not judged with {value} in its place: {error}"
    return Retuned(problem)


# One edit of such constants, judged.


@frozen
class Retuned:
    """``workgroup`` is the most work-items of a launch of the kernel then; ``None``: not settled.

    ``changes_launches``: the host's code differs, in what it launches with.
    """

    refused: str | None = None
    line: int | None = None
    changes_launches: bool = False
    concerns_kernel: bool = False
    workgroup: int | None = None

    def verdict(self) -> GuardVerdict:
        passed = "nothing but what follows from the constants changed, and of the host only its launches"
        return GuardVerdict(TUNED_CONSTANTS, self.refused is None, self.refused or passed, self.line)


class _RefusedError(Exception):
    """The message is the reason; ``line`` is where."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


class _UnseenError(Exception):
    """A function is called whose declaration is only seen without the precompiled preamble."""


def judge_constants(
    original: Original,
    text: bytes,
    after: bytes,
    declared: TunedConstants,
    kernel: str,
    *,
    probe: bool = False,
) -> Retuned:
    """Whether ``after`` is ``text`` with other values of these constants, and what depends on them follows.

    A ``probe`` may lie outside of what the GPU can launch. Raises ``NotJudgedError``.
    """
    try:
        constants = _changed_constants(original, text, after, declared, kernel)
        if not constants:  # the source as it stands, in a search
            return Retuned()
        unnamed = {name: one.value for name, one in constants.items() if "." in name}
        if unnamed:
            _require_grids(original, text, kernel, unnamed)
        if 0 < len(unnamed) < len(constants):  # in kernels only the named ones may mean anything
            alone = TunedConstants(tuple(one for one in declared.values if one[0] in unnamed))
            only = _with_values(text, ((constants[name], value) for name, value in alone.values))
            found = judge_constants(original, text, only, alone, kernel, probe=True)
            if found.refused is not None:
                return found
        comparison = _Comparison(original, text, after, constants, kernel, _preamble(original, after))
        try:
            return comparison.judged(probe=probe)
        except _UnseenError:
            return _Comparison(original, text, after, constants, kernel).judged(probe=probe)
    except _RefusedError as error:
        return Retuned(str(error), error.line)


def _require_grids(original: Original, text: bytes, kernel: str, unnamed: Mapping[str, int]) -> None:
    problem = block_obstacle(_host_of(original), text, kernel, unnamed)
    if problem is not None:  # what divides may stand in a header
        problem = block_obstacle(original.behind(None, "host").unit, text, kernel, unnamed)
    if problem is not None:
        raise _RefusedError(*problem)


def _preamble(original: Original, after: bytes) -> Preamble | None:
    preamble = original.preamble()
    if preamble is not None:
        try:
            preamble.blanked(after)
        except NotJudgedError:  # the constant stands in front of the last header
            return None
    return preamble


def _changed_constants(
    original: Original, text: bytes, after: bytes, declared: TunedConstants, kernel: str
) -> dict[str, Constant]:
    """Those that get another value, by name, where the texts differ in just these digits."""
    definitions = _definitions(text)
    if not declared.values:
        raise _RefusedError("no constant is named")
    names = dict(declared.values)
    if any("." in name for name in names):
        definitions |= unnamed_blocks(_host_of(original), text, kernel)
    missing = names.keys() - definitions.keys()
    if missing:
        raise _RefusedError(f"{min(missing)} is no constant of the file")
    expected = _with_values(text, ((definitions[name], value) for name, value in names.items()))
    if expected != after or any(not 1 <= value <= _LARGEST for value in names.values()):
        raise _RefusedError("more than the declared values changed, or a value is out of range")
    for name in names:
        one = definitions[name]
        if one.refused is not None:
            raise _RefusedError(f"{name}: {one.refused}", one.line)
        where = None if "." in name else _named_elsewhere(original, name, kernel)
        if where is not None:
            raise _RefusedError(f"{where} names {name}, too, and may depend on it", one.line)
    if original.front_end.unit != original.front_end.source:
        raise _RefusedError("a header's constants may mean something to every file that includes it")
    return {name: definitions[name] for name in names if names[name] != definitions[name].value}


def _named_elsewhere(original: Original, name: str, kernel: str) -> str | None:
    """Another file beside the source that names it, and launches the kernel or is included here."""
    source = original.front_end.source
    here, its = (re.compile(rb"\b%s\b" % re.escape(word).encode()) for word in (name, kernel))
    included = {one["name"].decode() for one in _INCLUDE.finditer(original.text)}
    seen = 0
    for path in _beside(source.parent):
        if path == source:
            continue
        seen += 1
        if seen > _MOST_FILES:
            return None
        try:
            content = read_regular(path, _MOST_BYTES)
        except (OSError, RplError):
            continue
        if here.search(content) and (path.name in included or its.search(content)):
            return path.name
    return None


def _beside(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.iterdir() if path.suffix in _SOURCES and path.is_file())


@attrs.define(eq=False)
class _Comparison:
    """The unit with both texts, node by node. ``constants`` are those that changed, as they were."""

    original: Original
    text: bytes
    after: bytes
    constants: Mapping[str, Constant]
    kernel: str
    preamble: Preamble | None = None
    #: Nodes of the original's tree that differ, by the object's identity; those of one side at a time.
    _changed: dict[int, Node] = attrs.field(factory=dict, init=False)
    #: Variables whose value differs, by their ids in the original's tree.
    _variables: dict[tuple[str, str], bool] = attrs.field(factory=dict, init=False)
    _of_file: set[str] = attrs.field(factory=set, init=False)
    _host_follows: bool = attrs.field(default=False, init=False)
    _launched: set[str] = attrs.field(factory=set, init=False)
    _in_kernel: bool = attrs.field(default=False, init=False)
    _other_kernel: _RefusedError | None = attrs.field(default=None, init=False)

    @cached_property
    def values(self) -> dict[str, int]:
        """Those of before, by name."""
        return {name: one.value for name, one in self.constants.items()}

    @cached_property
    def _places(self) -> frozenset[int]:
        """Where the numbers of unnamed block sizes stand."""
        unnamed = [one for name, one in self.constants.items() if "." in name]
        return frozenset(begin for one in unnamed for begin, _, _ in one.written(one.value))

    def judged(self, *, probe: bool) -> Retuned:
        preamble = self.preamble
        block: int | None = None
        with self.original.front_end.reading(self.after, preamble) as edited:
            for side in get_args(Side):
                before, now = self.original.behind(preamble, side), read(edited, side)
                if before.warnings != now.warnings:
                    raise _RefusedError(f"the compiler warns otherwise than before ({side} pass)")
                self._compare(before.unit, now.unit)
                if side == "host":
                    block = self._block(before.unit, now.unit, probe=probe)
        concerns = self._in_kernel or self.kernel in self._launched
        if self._other_kernel is not None and (concerns or not probe):
            raise self._other_kernel
        return Retuned(None, None, self._host_follows, concerns, block)

    def _compare(self, old: Unit, new: Unit) -> None:
        self._changed.clear()
        self._variables.clear()
        self._require_no_types(old)
        before, after = _functions(old), _functions(new)
        if [one.node.get("mangledName") for one in before] != [one.node.get("mangledName") for one in after]:
            raise _RefusedError("a function gets another name or type: its template arguments depend on it")
        # Local ones are followed where they are; those of headers come before every constant.
        self._of_file = {one.node["id"] for one in old.own if one.kind == "VarDecl" and not one.inside}
        for one, other in zip(before, after, strict=True):
            self._pair(one.node, other.node, (old, new))
        followed: list[Node] = []
        self._devices([one.node for one in before if _is_device(one.node)])
        for one in before:
            if not _is_device(one.node):
                followed += self._host(one.node, old)
        self._require_no_twins(before, followed)

    def _require_no_types(self, unit: Unit) -> None:
        """No class, enumeration or changing variable of the file depends on a constant."""
        names = "|".join(re.escape(name) for name in sorted(self._names()))
        word = re.compile(rb"\b(?:%s)\b" % names.encode())
        for one in unit.own:
            concerned = word.search(self.text, one.begin, one.end) or any(
                one.begin <= at < one.end for at in self._places
            )
            is_type = not one.inside and any(kind in one.kind for kind in _TYPES)
            if is_type and concerned:
                raise _RefusedError("a type depends on it", shown_line(self.text, one.begin))
            is_variable = one.kind == "VarDecl" and not one.inside
            if is_variable and concerned:
                words = self.text[one.begin : one.end].split(b"=")[0]
                if not _FIXED.search(words):
                    what = "a variable of the file that may change depends on it"
                    raise _RefusedError(what, shown_line(self.text, one.begin))

    def _names(self) -> set[str]:
        """With those of macros and file-scope constants that are made of them."""
        names = set(self.values)
        text = _SPLICE.sub(b"  ", self.text)
        made = [(one["name"].decode(), one["body"]) for one in _DEFINE.finditer(text)]
        made += [
            (one[1].decode(), one[2])
            for one in re.finditer(rb"\b(?:constexpr|const)\b[\w\s:]*?\b(\w+)\s*=([^;{}]*);", text)
        ]
        while True:
            words = re.compile(rb"\b(?:%s)\b" % "|".join(map(re.escape, sorted(names))).encode())
            more = {name for name, body in made if words.search(body)} - names
            if not more:
                return names
            names |= more

    # What differs: nodes by themselves, and references to variables whose value differs.

    def _pair(self, before: Node, after: Node, units: tuple[Unit, Unit]) -> bool:
        """Mark what differs below; whether anything does. The trees must have one form."""
        differs = False
        waiting = [(before, after)]
        while waiting:
            old, new = waiting.pop()
            parts, others = children(old), children(new)
            if old.get("kind") != new.get("kind") or len(parts) != len(others):
                raise _RefusedError(
                    "other code is compiled, not the same with another value", self._line(old)
                )
            if _itself(old) != _itself(new):
                self._changed[id(old)] = old
                differs = True
            reference, other = old.get("referencedDecl", {}), new.get("referencedDecl", {})
            if reference.get("id") in self._of_file and self._is_changed(reference["id"], other["id"], units):
                self._changed[id(old)] = old
                differs = True
            waiting += zip(parts, others, strict=True)
        return differs

    def _is_changed(self, before: str, after: str, units: tuple[Unit, Unit]) -> bool:
        """Whether a variable is declared with something that differs."""
        key = (before, after)
        if key not in self._variables:
            self._variables[key] = False  # one that is made of itself
            old, new = units[0].dump.variable(before), units[1].dump.variable(after)
            if old is not None and new is not None:
                self._variables[key] = self._pair(old, new, units)
        return self._variables[key]

    def _line(self, node: Node) -> int | None:
        begin = offset_of(node)[0]
        return shown_line(self.text, begin) if 0 <= begin <= len(self.text) else None

    # What of it is permitted.

    def _devices(self, functions: list[Node]) -> None:
        """Which kernels differ, by what they call."""
        differing = {str(one.get("name")) for one in functions if self._differs(one)}
        called: dict[str, set[str]] = {}
        for one in functions:
            names = (node["referencedDecl"] for node, _ in below(one) if "referencedDecl" in node)
            own = called.setdefault(str(one.get("name")), set())
            own |= {str(name.get("name")) for name in names if name.get("kind") in FUNCTIONS}
        for one in functions:
            name = str(one.get("name"))
            if all("." in name for name in self.values):
                self._require_bounds_only(one)
            if not is_kernel(one) or not differing & _reached(name, called):
                continue
            if name == self.kernel:
                self._in_kernel = True
            else:
                self._other_kernel = _RefusedError(f"the kernel {name} depends on it, too", self._line(one))

    def _require_bounds_only(self, function: Node) -> None:
        """Device code may say a block's size in the promise of launch bounds, where it means just that."""
        for node, parents in below(function):
            if id(node) in self._changed and not any(
                one.get("kind") in BLOCK_BOUNDS for one in (*parents, node)
            ):
                what = "says the number, too, and may mean something else"
                raise _RefusedError(f"{function.get('name')} {what}", self._line(node))

    def _differs(self, function: Node) -> bool:
        return any(id(node) in self._changed for node, _ in below(function))

    def _host(self, function: Node, unit: Unit) -> list[Node]:
        """Follows what differs to launches; gives the nodes that launches depend on."""
        own: set[str] = set()  # local variables that take part
        followed: dict[int, Node] = {}
        while True:
            size = len(own)
            for node, parents in below(function):
                identity = node.get("referencedDecl", {}).get("id")
                if id(node) in self._changed or identity in own:
                    self._host_follows = True
                    variable = self._follow(node, parents, unit)
                    if variable is not None:
                        own.add(str(variable["id"]))
                        followed[id(variable)] = variable
            if len(own) == size:
                break
        launches = [node for node, _ in below(function) if node.get("kind") == "CUDAKernelCallExpr"]
        return [*followed.values(), *launches]

    def _follow(self, node: Node, parents: Parents, unit: Unit) -> Node | None:
        """The local variable whose value it takes part in; ``None`` for a launch's configuration."""
        line = next(
            (line for one in (node, *reversed(parents)) if (line := self._line(one)) is not None), None
        )
        if node.get("kind") == "VarDecl":
            raise _RefusedError(
                f"the host has a variable of a size that depends on it: {node.get('name')}", line
            )
        child = node
        for outer, parent in zip((*reversed(parents[:-1]), {}), reversed(parents), strict=True):
            if outer.get("kind") == "CUDAKernelCallExpr" and parent is children(outer)[1]:
                self._launched.add(called_name(outer))
                return None
            if parent.get("kind") == "StaticAssertDecl":  # decides whether it compiles, and nothing else
                return None
            if parent.get("kind") == "VarDecl":
                if parent.get("storageClass") or not _SIZES.fullmatch(type_name(parent)):
                    raise _RefusedError(f"the host computes with it: {parent.get('name')}", line)
                return parent
            problem = _obstacle(parent, child, unit, whole=self.preamble is None)
            if problem is not None:
                raise _RefusedError(problem, line)
            child = parent
        raise _RefusedError(_OTHERWISE, line)

    def _require_no_twins(self, functions: list[OwnDeclaration], followed: list[Node]) -> None:
        """No number is left that looks as if it had to agree with one that changes."""
        twins: dict[int, str] = {}
        for name, value in self.values.items():
            twins[value] = name
            if value >= TELLING:
                twins |= {value - 1: name, **{value * other: name for other in self.values.values()}}
        near = {id(node) for one in followed for node, _ in below(one)}
        for function in functions:
            for node, _ in below(function.node):
                if node.get("kind") != "IntegerLiteral" or id(node) in self._changed:
                    continue
                value = int(str(node.get("value", "0")))
                if value in twins and value > 1 and (value >= TELLING - 1 or id(node) in near):
                    name = twins[value]
                    raise _RefusedError(_twin(value, name), self._line(node))
            # The tree shows no number that is the extent of an array.
            for at, number in numbers_in(self.text[function.begin : function.end]):
                begin, said = function.begin + at, value_of(number)
                changed = begin in self._places or any(begin == one.begin for one in self.constants.values())
                if said in twins and said >= TELLING - 1 and not changed:
                    name = twins[int(said)]
                    raise _RefusedError(_twin(int(said), name), shown_line(self.text, begin))

    def _block(self, old: Unit, new: Unit, *, probe: bool) -> int | None:
        """The most work-items of a launch; the limits of the GPU, and launches that don't follow, refuse."""
        before = launches_of(old, self.text, self.kernel)
        after = launches_of(new, self.after, self.kernel)
        if before is None or after is None:
            raise _RefusedError(
                f"the launches of {self.kernel} are not known: its name is used otherwise, too"
            )
        if not before or len(before) != len(after):
            raise _RefusedError(f"no launch of {self.kernel} stands in this file")
        most: int | None = 0
        for one, other in zip(before, after, strict=True):
            line = shown_line(self.text, one.begin)
            if one.block is not None and one.block == other.block and self._in_kernel:
                twins = {one.block[0] * one.block[1] * one.block[2], *one.block} - {1}
                twin = next((name for name, value in self.values.items() if value in twins), None)
                if twin is not None:
                    raise _RefusedError(f"this launch has {twin} work-items and does not follow it", line)
            if other.block is None:
                most = None
            elif most is not None:
                most = max(most, other.block[0] * other.block[1] * other.block[2])
        if most is not None and most > MOST_WORK_ITEMS and not probe:
            raise _RefusedError(f"a workgroup of {most} work-items is larger than {MOST_WORK_ITEMS}")
        return most


def _twin(value: int, name: str) -> str:
    return f"the source also says {value}, which may have to agree with {name}: name it, too"


_FIXED = re.compile(rb"\b(?:constexpr|const|__device__|__constant__|__shared__)\b")
_TYPES = ("Record", "ClassTemplate", "Typedef", "TypeAlias", "Enum", "Field", "Concept")
_SIZES = re.compile(
    r"(?:const )?(?:(?:unsigned |signed )?(?:int|long|long long|short|char)|unsigned|(?:struct )?dim3)"
)
_ARITHMETIC = frozenset(
    ("+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "~", "<", ">", "<=", ">=", "==", "!=")
)
_MADE = frozenset(("CXXConstructExpr", "CXXTemporaryObjectExpr"))
_COMPUTED = frozenset(
    (
        *("ImplicitCastExpr", "CStyleCastExpr", "CXXFunctionalCastExpr", "CXXStaticCastExpr", "ParenExpr"),
        *(
            "ConstantExpr",
            "ConditionalOperator",
            "ExprWithCleanups",
            "MaterializeTemporaryExpr",
            "MemberExpr",
        ),
        *("CXXBindTemporaryExpr", "CXXDefaultArgExpr", "UnaryExprOrTypeTraitExpr", "InitListExpr"),
        *("SubstNonTypeTemplateParmExpr",),
    )
)


_OTHERWISE = "the host uses it for something else than a launch"


def _obstacle(node: Node, child: Node, unit: Unit, *, whole: bool) -> str | None:
    """Why a value below ``child`` may do more in ``node`` than give another value."""
    kind = node.get("kind", "")
    if kind == "CUDAKernelCallExpr":
        return "a kernel gets it as an argument: it may say how much work there is"
    if kind == "CallExpr":
        computes = child is not children(node)[0] and _only_computes(node, unit, whole=whole)
        return None if computes else "the host hands it to a function"
    if kind in {"BinaryOperator", "UnaryOperator"}:
        return None if node.get("opcode") in _ARITHMETIC else _OTHERWISE
    if kind in _MADE:
        return None if "dim3" in type_name(node) else _OTHERWISE
    return None if kind in _COMPUTED else _OTHERWISE


def _functions(unit: Unit) -> list[OwnDeclaration]:
    """All that are compiled: instances of templates, not their patterns."""
    own = [one for one in unit.own if one.kind in FUNCTIONS and not one.inside]
    return [one for one in own if one.node.get("mangledName")]


def _itself(node: Node) -> object:
    own = {key: value for key, value in node.items() if key != "inner" and key not in DROPPED}
    return canonical(own)


def _attributes(function: Node) -> set[str]:
    return {child.get("kind", "") for child in children(function)}


def _is_device(function: Node) -> bool:
    kinds = _attributes(function)
    return is_kernel(function) or ("CUDADeviceAttr" in kinds and "CUDAHostAttr" not in kinds)


def _reached(name: str, called: Mapping[str, set[str]]) -> set[str]:
    """Names of functions of the file that one calls, and those call, and itself."""
    found, waiting = set[str](), [name]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += called.get(one, ())
    return found


def _only_computes(call: Node, unit: Unit, *, whole: bool) -> bool:
    """A function that is declared to: ``constexpr``, or by an attribute."""
    called = children(call)[0]
    while called.get("kind") == "ImplicitCastExpr" and children(called):
        called = children(called)[0]
    identity = called.get("referencedDecl", {}).get("id")
    node = None if identity is None else unit.dump.function(str(identity))
    function = None if identity is None else unit.function(str(identity))
    if node is None and not whole:
        raise _UnseenError
    return (node is not None and bool(node.get("constexpr"))) or (function is not None and function.harmless)
