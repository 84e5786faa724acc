"""Secrets in command lines: masked where a command is written, so that a run can be shared.

What a secret is, is told by its name (``--token=X``, ``--password X``, ``HF_TOKEN=X``) or its form
(``Bearer X``, ``https://user:X@host``). A name of another thing that ends alike (``--pad-token``,
``--max-token``) is none. It can't be complete: a secret that stands alone looks like any other word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

#: What stands in the place of a secret.
MASK = "***"

_NAME = (
    r"(?:[A-Za-z0-9]+[-_.])*?"
    r"(?:token|password|passwd|passphrase|pwd|secret|secret[-_]?key|api[-_]?key|apikey|access[-_]?key"
    r"|access[-_]?key[-_]?id|private[-_]?key|auth[-_]?key|credentials?)"
)
#: Tokens of language models, and numbers of tokens, are no secrets.
_NO_SECRET = re.compile(
    r"-*(?:.*[-_.])?(?:pad|eos|bos|unk|sep|cls|mask|image|audio|stop|start|end|max|min|num|new|per|special)[-_.]?token",
    re.IGNORECASE,
)
_OPTION = re.compile(rf"-{{1,2}}(?P<name>{_NAME})", re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"(?P<kept>(?<![A-Za-z0-9_.\-])-{{0,2}}(?P<name>{_NAME})=)(?P<secret>'[^']*'|\"[^\"]*\"|[^\s;&|'\"]+)",
    re.IGNORECASE,
)
#: Inside of one word that is itself a command, such as that of ``sh -c``.
_FOLLOWED = re.compile(
    rf"(?P<kept>(?<![A-Za-z0-9_.\-])--(?P<name>{_NAME})\s+)(?P<secret>'[^']*'|\"[^\"]*\"|[^\s\-;&|'\"][^\s;&|'\"]*)",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?P<kept>\b(?:bearer|basic)\s+)(?P<secret>[A-Za-z0-9+/=._~\-]{8,})", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"(?P<kept>[a-z][a-z0-9+.\-]*://[^\s/:@]*:)(?P<secret>[^\s/@]+)(?=@)", re.IGNORECASE)


def masked_text(text: str) -> str:
    """A command in one text, or one word of it, with each secret as ``***``."""
    for pattern in (_ASSIGNED, _FOLLOWED, _BEARER, _IN_ADDRESS):
        text = pattern.sub(_covered, text)
    return text


def masked_words(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a command with each secret as ``***``; a command without one is returned as it is."""
    found: list[str] = []
    for word in words:
        before = found[-1] if found else ""
        option = _OPTION.fullmatch(before)
        follows = option is not None and not _NO_SECRET.fullmatch(before) and not word.startswith("-")
        if follows:
            found.append(MASK)
        elif (whole := _ASSIGNED.match(word)) is not None and whole.start() == 0 and " " not in whole["kept"]:
            found.append(_whole(word, whole))
        else:
            found.append(masked_text(word))
    return tuple(found)


def is_masked(words: Sequence[str]) -> bool:
    """Whether something is masked in these words, so that they can't be run as they are."""
    return any(MASK in word for word in words)


def _whole(word: str, match: re.Match[str]) -> str:
    """``--token=a b;c`` is one word: all behind the first sign of equality is the secret."""
    return word if _NO_SECRET.fullmatch(match["name"]) else f"{match['kept']}{MASK}"


def _covered(match: re.Match[str]) -> str:
    name = match.groupdict().get("name")
    if name is not None and _NO_SECRET.fullmatch(name):
        return match[0]
    return f"{match['kept']}{MASK}"
