"""Find what looks like a key, token or password in text that is about to leave the machine.

Formats are those of detect-secrets, a scanner that others keep, and some that it lacks; what has no format is
recognised by the name it is assigned to. The value itself is never shown.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from detect_secrets.plugins.base import BasePlugin

#: The comment by which other scanners let a line pass, too.
HARMLESS_COMMENT = "pragma: allowlist secret"
#: Formats that detect-secrets does not know.
_KINDS = {
    "an OpenAI or Anthropic key": re.compile(r"\bsk-(?:[A-Za-z0-9]+-)*[A-Za-z0-9_-]{20,}"),
    "a GitHub token": re.compile(r"\bgithub_pat_[A-Za-z0-9_]{30,}"),
    "a Hugging Face token": re.compile(r"\bhf_[A-Za-z0-9]{30,}"),
    "a Google API key": re.compile(r"\bAIza[A-Za-z0-9_-]{35}"),
    "a Slack token": re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    "a private key": re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"),
    "a Stripe key": re.compile(r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    "a package index token": re.compile(r"\b(?:pypi-AgE[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{36})"),
    "an authorization header": re.compile(
        r"(?i)\b(?:bearer|basic)\s+(?=[A-Za-z._~+/-]*[0-9])[\w.~+/-]{20,}=*"
    ),
}
#: Rules of detect-secrets that find what kernels are full of: numbers, addresses, names of variables.
_TOO_EAGER = frozenset(
    ("Base64 High Entropy String", "Hex High Entropy String", "Public IP (ipv4)", "Secret Keyword")
)
#: A name that ends like a secret's, and the text that it gets in quotes.
_ASSIGNED = re.compile(
    r"(?i)\b\w*?(?:api_?key|access_?key|private_?key|secret_?key|auth_?key|secret|token|passw(?:or)?d|passphrase"
    r"|pwd|credentials?|(?-i:KEY)|_key)\w{0,8}\b(?:\[\s*\])?[\"']?\s*(?:[:=(,{]\s*|\s)\{?\s*(?:u8|[uUL])?"
    r"[\"'](?P<value>[^\"'\s]{6,})[\"']"
)
#: The same without quotes, as in settings files and comments.
_BARE = re.compile(
    r"(?i)\b\w*?(?:api_?key|access_?key|secret|token|passw(?:or)?d|_key)\s*[:=]\s*"
    r"(?P<value>[A-Za-z0-9+/_-]{20,}={0,2})(?![\w(.\[<])"
)
#: A plain ``key`` names other things as often, so its value must look random, too.
_PLAIN_KEY = re.compile(r"(?i)\b\w*key\w{0,8}\s*[:=({]\s*[\"'](?P<value>[A-Za-z0-9+/=_-]{16,})[\"']")
_ASSIGNED_KIND = "a value assigned to a key, token, secret or password"


@frozen
class Secret:
    """Where something that looks like a secret stands: ``line`` from 1 in the text that was looked at."""

    line: int
    kind: str


def find_secrets(text: str) -> tuple[Secret, ...]:
    """At most one finding per line, in order."""
    secrets = []
    for number, line in enumerate(text.split("\n"), 1):
        kind = _kind_of(line)
        if kind is not None:
            secrets.append(Secret(number, kind))
    return tuple(secrets)


def _kind_of(line: str) -> str | None:
    if HARMLESS_COMMENT in line:
        return None
    for kind, pattern in _KINDS.items():
        if pattern.search(line):
            return kind
    for kind, rule in _rules().items():
        if rule.analyze_line("", line):
            return f"a secret of the kind {kind}"
    if any(_is_value(match["value"], bits=2.2) for match in _ASSIGNED.finditer(line)):
        return _ASSIGNED_KIND
    loose = (match["value"] for pattern in (_BARE, _PLAIN_KEY) for match in pattern.finditer(line))
    if any(_is_value(value, bits=3.2) and _is_mixed(value) for value in loose):
        return _ASSIGNED_KIND
    return None


@cache
def _rules() -> dict[str, BasePlugin]:
    """The rules of detect-secrets by what they find; none of them asks anybody."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    known: Mapping[str, type[BasePlugin]] = get_mapping_from_secret_type_to_class()
    return {kind: known[kind]() for kind in sorted(known) if kind not in _TOO_EAGER}


def _is_value(text: str, bits: float) -> bool:
    """Whether ``text`` has enough entropy per character; ``%s``, ``xxxx`` and the like have not."""
    if any(sign in text for sign in "%{}<>"):
        return False
    return _entropy(text) >= bits


def _is_mixed(text: str) -> bool:
    return any(c.isdigit() for c in text) and any(c.isalpha() for c in text) and not text.startswith("0x")


def _entropy(text: str) -> float:
    """Shannon's, in bits per character."""
    counts: Iterable[int] = Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts)
