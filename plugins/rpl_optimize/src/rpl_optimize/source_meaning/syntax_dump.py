"""Look into clang's ``-ast-dump=json`` without reading it all: real headers make some hundred megabytes.

The dump lies in a file that is mapped, not loaded. It is printed with two blanks per level, so that where a
node ends is found by its indentation. Only nodes that somebody asks for become Python values: what the
edited file declares, and what that reaches.
"""

from __future__ import annotations

import json
import mmap
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from rpl_core.values import frozen
from rpl_optimize.source_meaning.front_end import NotJudgedError

Node = dict[str, Any]

_FIRST = b'"inner": [\n    {\n'
_BETWEEN = b"\n    },\n    {\n"
_LAST = b"\n    }\n  ]\n}"
#: A node, where "loc" follows; a mention of it elsewhere goes on with "name".
_FUNCTION = re.compile(
    rb'"kind": "(?:FunctionDecl|CXX(?:Method|Constructor|Destructor|Conversion)Decl)",\n +"loc"'
)
_PREVIOUS = re.compile(rb'"previousDecl": "(0x[0-9a-f]+)"')
#: Where clang goes on in another file, the line follows; who includes whom is said without.
_FILE = rb'"file": "([^"\n]*%s)",\n'
_NAMED = b'"file": "'
_ID = b'"id": "'


@frozen
class Place:
    """A byte of a file. ``macro``: it comes out of a macro that is used there."""

    file: str
    offset: int
    size: int
    macro: bool


class SyntaxDump:
    """One dump; ``directory`` is where relative paths begin. Close it."""

    def __init__(self, path: Path, directory: Path) -> None:
        """``NotJudgedError`` for anything but one whole dump."""
        self._directory = directory
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                raise NotJudgedError("the compiler printed no syntax tree; is it clang?")
            self._text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._begin = self._text.find(_FIRST) + len(_FIRST)
        self._end = self._text.find(b"\n}") - len(_LAST) + len(b"\n}")  # the first brace without blanks
        rest = self._text[self._end :] if self._end > self._begin >= len(_FIRST) else b""
        if rest.rstrip(b"\n") != _LAST:
            self.close()
            raise NotJudgedError("the compiler's syntax tree is not whole, or there are several")
        self._functions = dict(self._found_functions())
        self._redeclared: dict[bytes, list[bytes]] | None = None
        self._real: dict[str, str] = {}

    def close(self) -> None:
        self._text.close()

    def _found_functions(self) -> Iterator[tuple[bytes, int]]:
        for match in _FUNCTION.finditer(self._text):
            at = self._text.rfind(_ID, 0, match.start())
            begin = at + len(_ID)
            yield self._text[begin : self._text.find(b'"', begin)], at

    def function(self, identity: str) -> Node | None:
        """The declaration of a function with this id."""
        at = self._functions.get(identity.encode())
        return None if at is None else self._node(at)

    def variable(self, identity: str) -> Node | None:
        """The declaration of a variable with this id."""
        match = re.search(rb'"id": "%s",\n +"kind": "VarDecl",\n +"loc"' % identity.encode(), self._text)
        return None if match is None else self._node(match.start())

    def mentions(self, identity: str) -> int:
        """How often an expression names the declaration with this id."""
        pattern = rb'"referencedDecl": \{\n +"id": "%s"' % identity.encode()
        return sum(1 for _ in re.finditer(pattern, self._text))

    def redeclarations(self, identity: str) -> Iterator[str]:
        """Ids of all declarations of the same function: before it and behind it."""
        if self._redeclared is None:
            self._redeclared = {}
            for match in _PREVIOUS.finditer(self._text):
                at = self._text.rfind(_ID, 0, match.start()) + len(_ID)
                own = self._text[at : self._text.find(b'"', at)]
                self._redeclared.setdefault(match[1], []).append(own)
                self._redeclared.setdefault(own, []).append(match[1])
        waiting, seen = [identity.encode()], set[bytes]()
        while waiting:
            one = waiting.pop()
            if one not in seen:
                seen.add(one)
                yield one.decode()
                waiting += self._redeclared.get(one, ())

    def classes(self, name: str) -> Iterator[Node]:
        """All definitions of classes with this last name."""
        if not re.fullmatch(r"\w+", name):
            return
        for match in re.finditer(rb'"name": "%s",\n +"tagUsed"' % name.encode(), self._text):
            at = self._text.rfind(_ID, 0, match.start())
            node = self._node(at)
            if node.get("completeDefinition"):
                yield node

    def declarations_in(self, file: str) -> Iterator[tuple[Node, Places]]:
        """Top-level declarations with any part in ``file``, and where their first line belongs."""
        name = re.escape(json.dumps(Path(file).name)[1:-1].encode())
        changes = (m for m in re.finditer(_FILE % name, self._text) if self._is(m[1], file))
        change = next(changes, None)
        seen = False
        for begin, end in self._top_level():
            current = self._file_before(begin) if seen else ""
            touched = self.resolved(current) == file
            while change is not None and change.start() < end:
                seen = touched = True
                change = next(changes, None)
            if touched:
                yield self._parsed(begin, end), Places(self, current)

    def _is(self, name: bytes, file: str) -> bool:
        return self.resolved(str(json.loads(b'"' + name + b'"'))) == file

    def _file_before(self, position: int) -> str:
        """The file that clang named last before ``position``."""
        while (position := self._text.rfind(_NAMED, 0, position)) >= 0:
            end = self._text.find(b"\n", position)
            if self._text[end - 1 : end] == b",":
                return str(json.loads(self._text[position + len(_NAMED) - 1 : end - 1]))
        return ""

    def resolved(self, file: str) -> str:
        if file not in self._real:
            self._real[file] = os.path.realpath(self._directory / file) if file else ""
        return self._real[file]

    def _top_level(self) -> Iterator[tuple[int, int]]:
        begin = self._begin
        while (end := self._text.find(_BETWEEN, begin)) >= 0:
            yield begin, end
            begin = end + len(_BETWEEN)
        yield begin, self._end

    def _node(self, inside: int) -> Node:
        """The node whose id is at ``inside``: its braces stand two columns to the left."""
        line = self._text.rfind(b"\n", 0, inside) + 1
        end = self._text.find(b"\n" + b" " * (inside - line - 2) + b"}", inside)
        return self._parsed(line, end)

    def _parsed(self, begin: int, end: int) -> Node:
        try:
            node = json.loads(b"{" + self._text[begin:end] + b"}")
        except (ValueError, RecursionError) as error:
            raise NotJudgedError(f"the compiler's syntax tree can't be read: {error}") from None
        if not isinstance(node, dict):
            raise NotJudgedError("the compiler's syntax tree has no declarations")
        return node


@attrs.define
class Places:
    """Follows the file through a declaration: clang names it only where it changes."""

    dump: SyntaxDump
    file: str

    def enter(self, node: Node) -> tuple[Place | None, Place | None, Place | None]:
        """Location, begin and end of a node; nodes have to be entered in the order of the dump."""
        location = self._place(node["loc"]) if "loc" in node else None
        extent = node.get("range")
        if extent is None:
            return location, None, None
        return location, self._place(extent["begin"]), self._place(extent["end"])

    def _place(self, node: Node) -> Place | None:
        if "spellingLoc" in node:
            self._place(node["spellingLoc"])
            inner = self._place(node["expansionLoc"])
            return None if inner is None else attrs.evolve(inner, macro=True)
        if "file" in node:
            self.file = node["file"]
        if "offset" not in node:
            return None
        return Place(self.dump.resolved(self.file), node["offset"], node.get("tokLen", 0), macro=False)
