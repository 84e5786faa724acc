"""Secrets in command lines: masked where a command is written, so that a run can be shared.

What a secret is, is told by its name (``--token=X``, ``--password X``, ``HF_TOKEN=X``) or its form
(``Bearer X``, ``https://user:X@host``). A name of another thing that ends alike (``--pad-token``,
``--max-token``) is none. It can't be complete: a secret that stands alone looks like any other word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

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
    return _text(text, [])


def masked_words(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a command with each secret as ``***``; a command without one is returned as it is."""
    return _words(words, [])


def secret_bytes(words: Sequence[str]) -> tuple[bytes, ...]:
    """What ``masked_words`` puts ``***`` in the place of, as files hold it, the longest first.

    Shorter ones than ``SHORTEST_SOUGHT_BYTES`` are left out: to seek them would hit ordinary words.
    """
    found: list[str] = []
    _words(words, found)
    told = [one.strip("'\"") for one in found]
    written = {one.encode("utf-8", "surrogateescape") for one in told}
    written |= {json.dumps(one)[1:-1].encode() for one in told}
    sought = (one for one in written if len(one) >= SHORTEST_SOUGHT_BYTES)
    return tuple(sorted(sought, key=lambda one: (-len(one), one)))


def _text(text: str, found: list[str]) -> str:
    def covered(match: re.Match[str]) -> str:
        name = match.groupdict().get("name")
        if name is not None and _NO_SECRET.fullmatch(name):
            return match[0]
        found.append(match["secret"])
        return f"{match['kept']}{MASK}"

    for pattern in (_QUOTED, _ASSIGNED, _FOLLOWED, _BEARER, _IN_ADDRESS):
        text = pattern.sub(covered, text)
    return text


def _words(words: Sequence[str], found: list[str]) -> tuple[str, ...]:
    told: list[str] = []
    for word in words:
        before = told[-1] if told else ""
        option = _OPTION.fullmatch(before)
        whole = _ASSIGNED.match(word)
        if option is not None and not _NO_SECRET.fullmatch(before) and not word.startswith("-"):
            found.append(word)
            told.append(MASK)
        elif whole is None:
            told.append(_text(word, found))
        elif _NO_SECRET.fullmatch(whole["name"]):
            told.append(word)
        else:  # ``--token=a b;c`` is one word: all behind the first sign of equality is the secret
            found.append(word.removeprefix(whole["kept"]))
            told.append(f"{whole['kept']}{MASK}")
    return tuple(told)


def is_masked(words: Sequence[str]) -> bool:
    """Whether something is masked in these words, so that they can't be run as they are."""
    return any(MASK in word for word in words)
