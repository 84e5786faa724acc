"""What the preprocessor makes of a source around one function, and which directives that gets."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_optimize.source_meaning.line_numbers import shown_line

if TYPE_CHECKING:
    from rpl_optimize.source_meaning.front_end import FrontEnd, Side

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
