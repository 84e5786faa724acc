"""Text: from recordings made harmless, secrets masked, tables and lines that fit, names alike."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Sequence

_STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """``text`` with control characters and terminal escapes shown as ``\\xNN`` (line feeds and tabs stay)."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode("ascii") for c in text
    )


def harmless_json(text: str) -> str:
    """JSON ``text`` with C1 controls and marks of direction, as ``\\uNNNN``."""
    return text if text.isascii() else _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def encodable(text: str) -> str:
    """``text`` with bytes that are no UTF-8 (of a path, an argument) shown as ``\\udcNN``, as JSON needs."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def readable(text: str, width: int | None = None) -> str:
    """``text`` on one line, without control characters or broken encoding, cut in the middle to ``width``."""
    safe = printable(encodable(text)).replace("\n", "\\n").replace("\t", "\\t")
    return safe if width is None else shorten(safe, width)


def shorten(text: str, width: int) -> str:
    """``text`` cut in the middle to ``width`` characters, so that both ends of a long name stay visible."""
    if len(text) <= width:
        return text
    head = (width - 1) * 2 // 3
    tail = width - 1 - head
    return f"{text[:head]}…{text[-tail:] if tail else ''}"


# Aligned tables, lines that fit a width, and numbers with their nouns.


_BETWEEN = 2
#: Words of text columns are kept whole down to this width (chosen).
_LEAST_TEXT = 12
#: A label at the beginning of a line that its continuation hangs under, at most so long (chosen).
_LABEL = re.compile(r"\s*(?:\S+ ){0,3}\S* {2,}(?=\S)")
_LONGEST_LABEL = 28


def format_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    width: int | None = None,
) -> str:
    """Columns padded to their widest cell, two spaces apart, without trailing blanks.

    ``right`` names right-aligned columns. With a ``width`` the widest of the others are wrapped within their
    cells until all lines fit, as far as that is possible.
    """
    cells = [[printable(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    if width is not None:
        widths = _narrowed(widths, [i for i, title in enumerate(columns) if title not in right], width)
        cells = [list(part) for row in cells for part in _wrapped_cells(row, widths)]
    lines = []
    for row in cells:
        padded = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _narrowed(widths: Sequence[int], texts: Sequence[int], width: int) -> list[int]:
    """``widths`` with those of ``texts`` made smaller, the widest first, until they fit into ``width``."""
    narrowed = list(widths)
    over = sum(narrowed) + _BETWEEN * (len(narrowed) - 1) - width
    while over > 0:
        widest = max(texts, key=lambda i: narrowed[i], default=None)
        if widest is None or narrowed[widest] <= _LEAST_TEXT:
            break
        others = [narrowed[i] for i in texts if narrowed[i] < narrowed[widest]]
        step = min(over, narrowed[widest] - max((*others, _LEAST_TEXT)) or 1)
        narrowed[widest] -= step
        over -= step
    return narrowed


def _wrapped_cells(row: Sequence[str], widths: Sequence[int]) -> Iterable[tuple[str, ...]]:
    """One row in as many lines as its highest cell needs."""
    parts = [_cell_lines(cell, width) for cell, width in zip(row, widths, strict=True)]
    for number in range(max(map(len, parts))):
        yield tuple(part[number] if number < len(part) else "" for part in parts)


def _cell_lines(cell: str, width: int) -> list[str]:
    if len(cell) <= width:
        return [cell]
    lead = cell[: len(cell) - len(cell.lstrip())]
    hang = lead + "  " if len(lead) + _LEAST_TEXT < width else ""
    return textwrap.wrap(cell, width, subsequent_indent=hang, break_on_hyphens=False)


def wrap_lines(text: str, width: int) -> str:
    """``text`` with lines longer than ``width`` broken at blanks.

    They continue two characters further in, or below the text behind a label ("why    ...").
    """
    return "\n".join(part for line in text.split("\n") for part in _wrapped(line, width))


def _wrapped(line: str, width: int) -> Iterable[str]:
    if len(line) <= width:
        return (line,)
    label = _LABEL.match(line)
    indent = len(line) - len(line.lstrip()) + 2
    if label and indent < label.end() <= min(_LONGEST_LABEL, width // 2):
        longest = max(map(len, line[label.end() :].split()))
        indent = label.end() if longest <= width - label.end() else indent
    return textwrap.wrap(
        line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def counted(number: float | None, one: str, several: str = "", shown: str = "") -> str:
    """A number of things with its noun, and its verb where there is one: "1 kernel has", "2 kernels have".

    ``shown`` is the number as it is to look, if not in plain digits; an unknown one is a dash.
    """
    digits = shown or ("-" if number is None else str(number))
    return f"{digits} {one if number == 1 else several or f'{one}s'}"


# What somebody who wrote a name wrongly may have meant.


#: Names that are compared: those of a recording may be thousands, and comparing them takes time (chosen).
_MOST_NAMES = 2000
_LONGEST_NAME = 300


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question behind a complaint, such as "; did you mean 'time'?"; the empty text where nothing is alike.

    Case does not count. What ``word`` is a part of has been tried before, so a part is no answer here.
    """
    from difflib import get_close_matches  # not needed unless something goes wrong

    names = {name[:_LONGEST_NAME].lower(): name for name, _ in zip(known, range(_MOST_NAMES), strict=False)}
    alike = get_close_matches(word[:_LONGEST_NAME].lower(), names, 1)
    return f"; did you mean {names[alike[0]]!r}?" if alike else ""


# Secrets in command lines: masked where a command is written, so that a run can be shared.


#: What stands in the place of a secret.
MASK = "***"
#: Chosen: words of programs that are as long are rarely the same by chance.
SHORTEST_SOUGHT_BYTES = 6

_NAME = (
    r"(?:[A-Za-z0-9]+[-_.])*?"
    r"(?:token|password|passwd|passphrase|pwd|secret|secret[-_]?key|api[-_]?key|apikey|access[-_]?key"
    r"|access[-_]?key[-_]?id|private[-_]?key|auth[-_]?key|credentials?)"
)
#: Before the name: an option's dashes, or a compiler's ``-D``. Behind it: of options, headers and JSON.
_BEFORE, _SIGN = "(?:-D|-{0,2})", "(?:=|:\\s+|['\"]:\\s*)"
#: Tokens of language models, and numbers of tokens, are no secrets.
_NO_SECRET = re.compile(
    r"-*(?:.*[-_.])?(?:pad|eos|bos|unk|sep|cls|mask|image|audio|stop|start|end|max|min|num|new|per|special)[-_.]?token",
    re.IGNORECASE,
)
_OPTION = re.compile(rf"-{{1,2}}(?P<name>{_NAME})", re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"(?P<kept>(?<![A-Za-z0-9_.\-]){_BEFORE}(?P<name>{_NAME}){_SIGN})(?!\*\*\*)(?P<secret>'[^']*'|\"[^\"]*\"|[^\s;&|'\"]+)",
    re.IGNORECASE,
)
#: Inside of one word that is itself a command, such as that of ``sh -c``.
_FOLLOWED = re.compile(
    rf"(?P<kept>(?<![A-Za-z0-9_.\-])--(?P<name>{_NAME})\s+)(?!\*\*\*)(?P<secret>'[^']*'|\"[^\"]*\"|[^\s\-;&|'\"][^\s;&|'\"]*)",
    re.IGNORECASE,
)
#: ``'--token=a b'``, as a shell's quotes make one word of it.
_QUOTED = re.compile(
    rf"(?P<kept>(?P<quote>['\"]){_BEFORE}(?P<name>{_NAME})(?:=|:\s+))(?!\*\*\*)(?P<secret>(?:(?!(?P=quote)).)+)",
    re.IGNORECASE | re.DOTALL,
)
_BEARER = re.compile(
    r"(?P<kept>\b(?:bearer|basic)\s+)(?!\*\*\*)(?P<secret>[A-Za-z0-9+/=._~\-]{8,})", re.IGNORECASE
)
_IN_ADDRESS = re.compile(
    r"(?P<kept>(?<![a-z0-9+.\-])[a-z0-9][a-z0-9+.\-]*://[^\s/:@]*:)(?!\*\*\*)(?P<secret>[^\s/@]+)(?=@)",
    re.IGNORECASE,
)


def masked_text(text: str) -> str:
    """A command in one text, or one word of it, with each secret as ``***``."""
    return _mask_in_text(text, [])


def masked_words(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a command with each secret as ``***``; a command without one is returned as it is."""
    return _mask_in_words(words, [])


def secret_bytes(words: Sequence[str]) -> tuple[bytes, ...]:
    """What ``masked_words`` puts ``***`` in the place of, as files hold it, the longest first.

    Shorter ones than ``SHORTEST_SOUGHT_BYTES`` are left out: to seek them would hit ordinary words.
    """
    secrets: list[str] = []
    _mask_in_words(words, secrets)
    told = [secret.strip("'\"") for secret in secrets]
    written = {secret.encode("utf-8", "surrogateescape") for secret in told}
    written |= {json.dumps(secret)[1:-1].encode() for secret in told}
    sought = (secret for secret in written if len(secret) >= SHORTEST_SOUGHT_BYTES)
    return tuple(sorted(sought, key=lambda secret: (-len(secret), secret)))


def _mask_in_text(text: str, secrets: list[str]) -> str:
    def covered(match: re.Match[str]) -> str:
        name = match.groupdict().get("name")
        if name is not None and _NO_SECRET.fullmatch(name):
            return match[0]
        secrets.append(match["secret"])
        return f"{match['kept']}{MASK}"

    for pattern in (_QUOTED, _ASSIGNED, _FOLLOWED, _BEARER, _IN_ADDRESS):
        text = pattern.sub(covered, text)
    return text


def _mask_in_words(words: Sequence[str], secrets: list[str]) -> tuple[str, ...]:
    told: list[str] = []
    for word in words:
        before = told[-1] if told else ""
        option = _OPTION.fullmatch(before)
        whole = _ASSIGNED.match(word)
        if option is not None and not _NO_SECRET.fullmatch(before) and not word.startswith("-"):
            secrets.append(word)
            told.append(MASK)
        elif whole is None:
            told.append(_mask_in_text(word, secrets))
        elif _NO_SECRET.fullmatch(whole["name"]):
            told.append(word)
        else:  # ``--token=a b;c`` is one word: all behind the first sign of equality is the secret
            secrets.append(word.removeprefix(whole["kept"]))
            told.append(f"{whole['kept']}{MASK}")
    return tuple(told)


def is_masked(words: Sequence[str]) -> bool:
    """Whether something is masked in these words, so that they can't be run as they are."""
    return any(MASK in word for word in words)
