"""One compilation unit: what its edited file declares, and what the functions mean that this reaches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import get_args

import attrs

from rpl_core.values import frozen
from rpl_optimize.source_meaning.front_end import FrontEnd, NotJudgedError, Pass, Preamble, Side
from rpl_optimize.source_meaning.functions import FUNCTIONS, Event, body_of, events_of, type_name
from rpl_optimize.source_meaning.syntax_dump import Node, Place, Places, SyntaxDump

_DUMP = ("-fsyntax-only", "-Xclang", "-ast-dump=json")
_SPECIAL = frozenset(("CXXConstructorDecl", "CXXDestructorDecl"))
_LAST_NAME = re.compile(r"(\w+)\s*[\[\]\d ]*$")
#: No class: pointers, references, functions, lambdas and the numbers of the language.
_NO_CLASS = re.compile(
    r".*[*&)]|(?:(?:const|volatile|unsigned|signed|long|short|int|char|bool|float|double|void|__half|_Float16"
    r"|wchar_t|char\d+_t|__int128)\b[\s\[\]\d]*)+"
)


@frozen(eq=False)
class Function:
    """``defined``: with a body. ``harmless``: declared to compute only (``const``, ``pure``), or trivial."""

    identity: str
    name: str
    mangled: str
    events: tuple[Event, ...]
    defined: bool
    harmless: bool
    virtual: bool


@frozen(eq=False)
class OwnDeclaration:
    """A declaration of the edited file; ``node`` is whole for functions that stand in no other, else the id.

    ``end`` is the byte behind it. ``macro``: it ends inside of a macro, or its name does.
    """

    kind: str
    begin: int
    end: int
    macro: bool
    inside: bool  # of another function
    node: Node


@attrs.define(eq=False)
class Unit:
    """``own`` are the declarations of the edited file. The others are looked up in the dump; close it."""

    dump: SyntaxDump
    own: tuple[OwnDeclaration, ...]
    _functions: dict[str, Function | None] = attrs.field(factory=dict, init=False)
    _special: dict[str, tuple[Function, ...]] = attrs.field(factory=dict, init=False)
    _definitions: dict[str, tuple[Node | None, str]] = attrs.field(factory=dict, init=False)

    def definition(self, identity: str) -> tuple[Node | None, str]:
        """The declaration of a function that has its body, if one has, and its name."""
        if identity not in self._definitions:
            nodes = [self.dump.function(one) for one in self.dump.redeclarations(identity)]
            known = [node for node in nodes if node is not None]
            whole = next((node for node in known if body_of(node) is not None), None)
            name = str(known[0].get("name")) if known else "a function that is not known"
            self._definitions[identity] = (whole, name)
        return self._definitions[identity]

    def function(self, identity: str) -> Function | None:
        """What is called by this id, by the declaration that has its body; ``None`` for a variable."""
        if identity not in self._functions:
            nodes = [self.dump.function(one) for one in self.dump.redeclarations(identity)]
            functions = [_function(node) for node in nodes if node is not None]
            whole = (one for one in functions if one.defined)
            self._functions[identity] = next(whole, functions[0] if functions else None)
        return self._functions[identity]

    def special_members(self, name: str) -> tuple[Function, ...]:
        """Constructors and destructors of every class with the type's last name, and of its parts."""
        last = last_name(name)
        if last is None:
            return ()
        if last not in self._special:
            self._special[last] = ()  # a class that holds pointers to itself ends here
            self._special[last] = tuple(self._of_class(last))
        return self._special[last]

    def _of_class(self, last: str) -> Iterator[Function]:
        for node in self.dump.classes(last):
            for base in node.get("bases", ()):
                yield from self.special_members(str(base.get("type", {}).get("qualType", "")))
            for child in node.get("inner", ()):
                if child.get("kind") in _SPECIAL:
                    function = self.function(child["id"])
                    yield from () if function is None else (function,)
                elif child.get("kind") == "FieldDecl":
                    yield from self.special_members(type_name(child))


def read_unit(one: Pass, side: Side) -> Unit:
    """Raises ``NotJudgedError``."""
    path = one.run(side, *_DUMP)
    dump = SyntaxDump(path, one.front_end.directory)
    path.unlink()  # it stays mapped
    source = str(one.front_end.source.resolve())
    own: list[OwnDeclaration] = []
    for declaration, places in dump.declarations_in(source):
        own += _own(declaration, places, source)
    return Unit(dump, tuple(own))


@frozen(eq=False)
class Reading:
    """A unit of one side, and what the compiler warned of."""

    unit: Unit
    warnings: tuple[str, ...]


@attrs.define(eq=False)
class Original:
    """One source as its compiler reads it: each side once, for everybody who asks."""

    front_end: FrontEnd
    text: bytes
    _preamble: Preamble | NotJudgedError | None = attrs.field(default=None, init=False)
    _readings: dict[tuple[Side, bool], Reading] = attrs.field(factory=dict, init=False)
    _pragmas: frozenset[bytes] | None = attrs.field(default=None, init=False)

    def preamble(self) -> Preamble | None:
        """What edits share, precompiled; ``None`` where the compiler can't do that."""
        if self._preamble is None:
            try:
                self._preamble = Preamble(self.front_end, self.text)
                for side in get_args(Side):
                    self._preamble.compiled(side)
                    self.behind(self._preamble, side)
            except NotJudgedError as error:
                self._preamble = error
        return None if isinstance(self._preamble, NotJudgedError) else self._preamble

    def behind(self, preamble: Preamble | None, side: Side) -> Reading:
        """The unit without the declarations of its preamble, or all of it."""
        key = (side, preamble is not None)
        if key not in self._readings:
            with self.front_end.reading(self.text, preamble) as one:
                self._readings[key] = read(one, side)
        return self._readings[key]

    def pragmas(self) -> frozenset[bytes]:
        """All of the device pass, those of headers and macros included. Raises ``NotJudgedError``."""
        if self._pragmas is None:
            with self.front_end.reading(self.text) as one, one.run("device", "-E").open("rb") as lines:
                words = (b" ".join(line.split()) for line in lines)
                self._pragmas = frozenset(one for one in words if one.startswith((b"#pragma", b"# pragma")))
        return self._pragmas


def read(one: Pass, side: Side) -> Reading:
    """Raises ``NotJudgedError``."""
    unit = read_unit(one, side)
    return Reading(unit, one.messages(side))


def last_name(name: str) -> str | None:
    """``const ns::Guard<int>[4]`` is a ``Guard``; ``None`` for what is no class."""
    plain = re.sub(r"<.*>", "", name)
    found = None if _NO_CLASS.fullmatch(plain) else _LAST_NAME.search(plain)
    return None if found is None else found[1]


def _function(node: Node) -> Function:
    inner = {child.get("kind") for child in node.get("inner", ())}
    # The compiler's own constructors and destructors get a body where they are used and do anything.
    trivial = node.get("kind") in _SPECIAL and bool(node.get("isImplicit"))
    return Function(
        identity=node["id"],
        name=node.get("name", ""),
        mangled=node.get("mangledName", ""),
        events=tuple(events_of(node)),
        defined="CompoundStmt" in inner,
        harmless=trivial or "ConstAttr" in inner or "PureAttr" in inner,
        virtual=bool(node.get("virtual")),
    )


def _own(declaration: Node, places: Places, source: str) -> Iterator[OwnDeclaration]:
    """A declaration and all below it that stand in the source."""
    waiting: list[tuple[Node, bool]] = [(declaration, False)]
    while waiting:
        node, inside = waiting.pop()
        kind = node.get("kind", "")
        location, begin, end = places.enter(node)
        if kind.endswith("Decl"):
            yield from _placed(node, (location, begin, end), source, inside=inside)
        inside = inside or kind in FUNCTIONS
        parts = [*node.get("array_filler", ()), *node.get("inner", ())]
        waiting.extend((child, inside) for child in reversed(parts) if isinstance(child, dict))


def _placed(
    node: Node, places: tuple[Place | None, Place | None, Place | None], source: str, *, inside: bool
) -> Iterator[OwnDeclaration]:
    location, begin, end = places
    # Builtins are declared where they are used first.
    if location is None or begin is None or end is None or node.get("isImplicit"):
        return
    if all(place.file == source for place in (location, begin, end)):
        macro, size = end.macro or location.macro, end.size
        kept = node if node["kind"] in FUNCTIONS and not inside else {"id": node["id"]}
        yield OwnDeclaration(node["kind"], begin.offset, end.offset + size, macro, inside, kept)
