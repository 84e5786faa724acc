"""The user's compiler as a reader of sources: the command of their build, stopped before it makes code."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import attrs

from rpl_core.errors import RplError, TimeLimitError
from rpl_core.process import describe_exit
from rpl_core.values import frozen
from rpl_optimize.running.sandbox import Reach, run_confined


class NotJudgedError(Exception):
    """The compiler can't be asked, or says nothing that could be relied on; the message is the reason."""


# Numbers of lines as compilers show them, and how an edit keeps those behind it.

_LINE = re.compile(rb"^[ \t]*#[ \t]*line[ \t]+(?P<number>\d+)", re.MULTILINE)


def shown_line(text: bytes, offset: int) -> int:
    """The number that compilers give to the line of ``offset``, ``#line`` directives before it followed."""
    line = text.count(b"\n", 0, offset) + 1
    last = None
    for last in _LINE.finditer(text, 0, offset):  # noqa: B007 - the last one counts
        pass
    if last is None:
        return line
    return int(last["number"]) + line - (text.count(b"\n", 0, last.end()) + 1) - 1


def line_directive(before: bytes, end: int) -> bytes:
    """What keeps the numbers of the lines behind a function that ends at ``end`` of ``before``."""
    newline = b"\r\n" if before[end : end + 2] == b"\r\n" else b"\n"
    return newline + b"#line %d" % (shown_line(before, end) + 1)


Side = Literal["device", "host"]

#: Chosen: real HIP headers take a few seconds and some hundred megabytes of tree.
TIME_LIMIT_S = 120.0
_MOST_MESSAGES = 1 << 20
#: Options of a build that say what is made and where; with their value where that is the next word.
_OF_OUTPUTS = frozenset(
    ("-c", "-S", "-E", "-M", "-MM", "-MD", "-MMD", "-MP", "--genco", "-shared", "--hip-link")
)
_WITH_VALUE = frozenset(("-o", "-MF", "-MT", "-MQ", "-L", "-l", "-T", "-Xlinker", "-x", "-mllvm"))
_LINKING = ("-l", "-L", "-Wl,", "-fuse-ld=", "-save-temps", "--save-temps", "-o")
_INPUTS = (".o", ".a", ".so", ".obj", ".bc", ".hipfb")
_SOURCES = (".hip", ".cu", ".cpp", ".cc", ".cxx", ".C")
_SIDES: Mapping[Side, str] = {"device": "--cuda-device-only", "host": "--cuda-host-only"}
#: The macros of date and time may be hidden in a macro of a header, where only the compiler sees them.
_MESSAGES = (
    *("-fno-color-diagnostics", "-fno-caret-diagnostics", "-Qunused-arguments"),
    *("-Wdate-time", "-Wno-error=date-time"),
)


@frozen
class FrontEnd:
    """``words`` are compiler and options; ``unit`` is compiled, ``source`` (it or its header) edited.

    The compiler reads ``readable`` beside what the command and the folders of both files hold. ``instances``
    are made of templates of the source: explicit instantiations, each as C++ says it.
    """

    words: tuple[str, ...]
    unit: Path
    source: Path
    directory: Path
    environment: Mapping[str, str] | None = None
    readable: tuple[Path, ...] = ()
    instances: tuple[str, ...] = ()

    @contextlib.contextmanager
    def reading(self, text: bytes, preamble: Preamble | None = None) -> Iterator[Pass]:
        """Passes over the unit with ``text`` in place of the source, behind a ``preamble`` of it if given."""
        with tempfile.TemporaryDirectory(prefix="rpl-meaning-") as scratch:
            content, overlay = Path(scratch, "source"), Path(scratch, "overlay.yaml")
            text = text if preamble is None else preamble.blanked(text)
            content.write_bytes(b"\n".join((text, *(line.encode() for line in self.instances))))
            place = {
                "type": "directory",
                "name": str(self.source.parent),
                "contents": [{"type": "file", "name": self.source.name, "external-contents": str(content)}],
            }
            described = {"version": 0, "use-external-names": "false", "roots": [place]}
            overlay.write_text(json.dumps(described), encoding="utf-8")
            yield Pass(self, overlay, Path(scratch), preamble)


@frozen
class Pass:
    """The unit as it would be with one text of the source."""

    front_end: FrontEnd
    overlay: Path | None
    scratch: Path
    preamble: Preamble | None = None

    def run(self, side: Side, *actions: str) -> Path:
        """A file with what the compiler writes. ``NotJudgedError`` when it fails, or writes too much."""
        one = self.front_end
        place = () if self.overlay is None else (f"-ivfsoverlay{self.overlay}",)
        words = [word for word in one.words if word != "-w"]  # warnings tell original and edit apart
        readable = [*one.readable, one.source.parent, one.unit.parent]
        if self.preamble is not None:
            actions = (*("-Xclang", "-include-pch", "-Xclang", str(self.preamble.compiled(side))), *actions)
            readable.append(self.preamble.directory)
        command = [*words, _SIDES[side], *_MESSAGES, *place, *actions, str(one.unit)]
        written, messages = self.scratch / f"written-{side}", self.messages_file(side)
        reach = Reach(tuple(readable), (self.scratch,), self.scratch)
        environment = {**os.environ, **(one.environment or {})}
        try:
            result = run_confined(
                command, one.directory, reach, environment, TIME_LIMIT_S, log=messages, stdout=written
            )
        except TimeLimitError:
            raise NotJudgedError(f"the compiler did not end within {TIME_LIMIT_S:g} s") from None
        except RplError as error:
            raise NotJudgedError(error.fact) from error
        if not result.succeeded:
            raise NotJudgedError(self._failure(side, describe_exit(result)))
        return written

    def messages_file(self, side: Side) -> Path:
        return self.scratch / f"messages-{side}"

    def messages(self, side: Side) -> tuple[str, ...]:
        """Warnings of the last run by their words, places left out."""
        text = self.messages_file(side).read_bytes()[:_MOST_MESSAGES].decode("utf-8", "replace")
        found = (line.partition(": warning: ")[2] for line in text.splitlines())
        return tuple(sorted(warning for warning in found if warning))

    def _failure(self, side: Side, ending: str) -> str:
        """The first error; what stands in files outside of the project is not repeated."""
        text = self.messages_file(side).read_bytes()[:_MOST_MESSAGES].decode("utf-8", "replace")
        lines = [line for line in text.splitlines() if "error: " in line]
        if not lines:
            program = self.front_end.words[0]
            if shutil.which(program) is None:
                return f"{program} can't be started: it is not there"
            return f"the compiler {ending}"
        place, _, what = lines[0].partition("error: ")
        source = str(self.front_end.source)
        if not place.startswith(source):
            return "it does not compile: an error in another file than the source"
        return f"it does not compile: line {place.removeprefix(source).strip(': ')}: {what}"


# What stands in front of the functions of a source, headers above all, compiled once for all of its edits.

_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include\b[^\n]*\n", re.MULTILINE)
_CONDITION = re.compile(rb"^[ \t]*#[ \t]*(if|endif)\w*[^\n]*\n", re.MULTILINE)
_FUNCTIONS_BEGIN = re.compile(rb"__global__|__device__")


class Preamble:
    """The first ``length`` bytes of a source, up to its last ``#include``, as precompiled headers.

    The compiler prints the declarations of a unit without those of its precompiled header, so that a dump
    holds what the source itself declares, and takes a tenth of the time. A text is read behind it with
    blanks in its place, so that every byte and line keeps its number.
    """

    def __init__(self, front_end: FrontEnd, text: bytes) -> None:
        """``NotJudgedError`` where there is none, or what stands there is not complete by itself."""
        self.length = _preamble_length(text)
        if self.length == 0 or front_end.unit != front_end.source:
            raise NotJudgedError("no headers stand in front of the functions of this file")
        self._text = text[: self.length]
        self.directory = Path(tempfile.mkdtemp(prefix="rpl-preamble-"))
        weakref.finalize(self, shutil.rmtree, self.directory, ignore_errors=True)
        content = self.directory / front_end.source.name
        content.write_bytes(self._text)
        folder = front_end.source.parent
        self._front_end = attrs.evolve(
            front_end,
            words=(*front_end.words, "-iquote", str(folder)),
            unit=content,
            source=content,
            readable=(*front_end.readable, folder),
            instances=(),
        )

    def compiled(self, side: Side) -> Path:
        """The precompiled header of one side, made when it is asked for first."""
        made = self.directory / side
        if not made.exists():
            words = (word for part in ("-emit-pch", "-o", str(made)) for word in ("-Xclang", part))
            Pass(self._front_end, None, self.directory).run(side, "-fsyntax-only", *words)
        return made

    def blanked(self, text: bytes) -> bytes:
        """``NotJudgedError`` for a text that does not begin with these bytes."""
        if not text.startswith(self._text):
            raise NotJudgedError("the edit changes what stands in front of the functions")
        return _NO_NEWLINE.sub(b" ", self._text) + text[self.length :]


_NO_NEWLINE = re.compile(rb"[^\r\n]")


def _preamble_length(text: bytes) -> int:
    """Up to the last ``#include`` before a function of the device, and to the end of its conditions."""
    functions = _FUNCTIONS_BEGIN.search(text)
    includes = list(_INCLUDE.finditer(text, 0, len(text) if functions is None else functions.start()))
    end = includes[-1].end() if includes else 0
    words = [one[1] for one in _CONDITION.finditer(text, 0, end)]
    depth = words.count(b"if") - words.count(b"endif")
    for one in _CONDITION.finditer(text, end):
        if depth <= 0:
            break
        depth += 1 if one[1] == b"if" else -1
        end = one.end()
    return end if depth == 0 else 0


def front_end_of(
    commands: tuple[tuple[str, ...], ...], source: Path, directory: Path, unit: Path | None = None
) -> FrontEnd | str:
    """The front end of a finished build's ``commands``, or why none of them compiles the source.

    ``unit`` is the file that was compiled where ``source`` is a header of it.
    """
    unit = source if unit is None else unit
    for words in reversed(commands):
        if any(Path(word).name == unit.name for word in words[1:]):
            return FrontEnd((words[0], *_options(words[1:], unit)), unit, source, directory)
    return f"no command of the build names {unit.name}, so its options are not known"


def _options(words: tuple[str, ...], unit: Path) -> Iterator[str]:
    """Without inputs, outputs and the link; of several architectures the first."""
    rest = iter(_without_bundle(words))
    architecture = False
    for word in rest:
        if word in _WITH_VALUE:
            value = next(rest, "")
            if word == "-mllvm" or (word == "-x" and value != "none"):
                yield from (word, value)
        elif word.startswith("--offload-arch="):
            if not architecture:
                yield word
            architecture = True
        elif (
            word in _OF_OUTPUTS
            or word.endswith(("-host-only", "-device-only"))
            or (word.startswith(_LINKING) and not word.startswith("-offload"))
        ):
            continue
        elif word.startswith("-") or not _is_input(word, unit):
            yield word


def _without_bundle(words: tuple[str, ...]) -> tuple[str, ...]:
    """Without the device code that a host compilation is given."""
    if "-fcuda-include-gpubinary" not in words:
        return words
    at = words.index("-fcuda-include-gpubinary")
    return words[: at - 1] + words[at + 3 :]


def _is_input(word: str, unit: Path) -> bool:
    return word.endswith((*_INPUTS, *_SOURCES)) or Path(word).name == unit.name


# What the preprocessor makes of a source around one function, and which directives that gets.

_MARK = re.compile(rb'# \d+ "')
_BEGIN, _END = b"#pragma rpl begin", b"#pragma rpl end"
#: Hints for loops, the only pragmas that an edit may add (clang, "Extensions for loop hint optimizations").
_HINT = re.compile(
    rb"\s*#\s*pragma\s+(?:nounroll|unroll(?:\s*\(?\s*\w+\s*\)?)?"
    rb"|clang\s+loop(?:\s+unroll(?:_count)?\s*\(\s*\w+\s*\))+)\s*"
)
#: What a text says of the time and place of its compilation. An edit must not ask: it would compute
#: one thing for its checks and another for its user (C++ [cpp.predefined], clang "Builtin Macros").
_TIME_AND_PLACE = re.compile(
    rb"__(?:(?:TIME|DATE|TIMESTAMP|COUNTER|FILE|BASE_FILE|FILE_NAME|LINE|INCLUDE_LEVEL)__"
    rb"|builtin_(?:FILE|FILE_NAME|LINE|COLUMN|FUNCTION|FUNCSIG|source_location)\b)"
)
_SPLICE = re.compile(rb"\\[ \t\v\f\r]*\n")
_HASH = re.compile(rb"#|%:|\?\?=")


@frozen
class Preprocessed:
    """``before`` and ``behind`` are digests of the text around a function, ``pragmas`` those in it."""

    before: str
    behind: str
    pragmas: Counter[bytes]  # without hints


def preprocess(front_end: FrontEnd, side: Side, text: bytes, begin: int, end: int) -> Preprocessed:
    """Of the unit with ``text`` as its source, whose function has the bytes ``[begin, end)``."""
    parts = {b"": hashlib.sha256(), _END: hashlib.sha256()}
    pragmas: Counter[bytes] = Counter()
    now = b""
    with front_end.reading(_marked(text, begin, end)) as one, one.run(side, "-E").open("rb") as lines:
        for line in lines:
            words = b" ".join(line.split())
            if words in {_BEGIN, _END}:
                now = words
            elif now == _BEGIN:
                if words.startswith(b"#pragma") and not _HINT.fullmatch(words):
                    pragmas[words] += 1
            elif words and not _MARK.match(words):
                parts[now].update(words + b"\n")
    return Preprocessed(parts[b""].hexdigest(), parts[_END].hexdigest(), pragmas)


def _marked(text: bytes, begin: int, end: int) -> bytes:
    """With pragmas around the function that the preprocessor hands on, and lines numbered as before."""
    parts = [text[:begin]]
    for mark, place, rest in ((_BEGIN, begin, text[begin:end]), (_END, end, text[end:])):
        parts += [b"\n%s\n#line %d\n" % (mark, shown_line(text, place)), rest]
    return b"".join(parts)


def asks_when_and_where(text: bytes) -> Counter[bytes]:
    """How often a text names a macro or builtin that tells the time or place of the compilation."""
    return Counter(match[0] for match in _TIME_AND_PLACE.finditer(_SPLICE.sub(b"", text)))


def directives(text: bytes) -> Counter[bytes]:
    """Every line of ``text`` that may be a directive, hints left out, without asking a compiler.

    So nothing is included and no macro expanded before somebody looked. Text in comments and strings may
    count too: only what follows something else on its line can't be a directive.
    """
    counts: Counter[bytes] = Counter()
    for line in _SPLICE.sub(b"", text).split(b"\n"):
        mark = _HASH.search(line)
        if mark is None or line[: mark.start()].rpartition(b"*/")[2].strip():
            continue
        if not _HINT.fullmatch(line):
            counts[b" ".join(line.split())] += 1
    # With trigraphs this joins lines, without it does not.
    counts[b"??/"] = text.count(b"??/")
    return +counts
