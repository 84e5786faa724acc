"""Before anything leaves the machine: say what, and stop at what looks like a secret."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from rpl_core.errors import UsageError
from rpl_core.values import frozen
from rpl_llm_unroll.exchange import Spent, tokens_of
from rpl_llm_unroll.interfaces.client import Message

if TYPE_CHECKING:
    from detect_secrets.plugins.base import BasePlugin

    from rpl_llm_unroll.settings import LlmSettings
    from rpl_optimize.interfaces.transformation import KernelSource


# Find what looks like a key, token or password in text that is about to leave the machine.


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


_CONTENT = {
    "standard": "the kernel {kernel} of {file} with what it uses",
    "compact": "the kernel {kernel} of {file} alone",
    "full-source": "the whole of {file}",
}


@frozen
class SuspiciousLine:
    """``line`` counts in the source file; ``None`` for text that is not from it."""

    line: int | None
    kind: str

    def describe(self, file: str) -> str:
        return f"{file}, line {self.line}" if self.line is not None else "the figures and names of the run"


def suspicious_lines(text: str, source: bytes) -> tuple[SuspiciousLine, ...]:
    """What looks like a secret in ``text``, by line of the source it came from."""
    lines = text.split("\n")
    places: dict[str, int] = {}
    for number, line in enumerate(source.decode("utf-8", "replace").split("\n"), 1):
        places.setdefault(line.strip(), number)
    secrets = find_secrets(text)
    return tuple(SuspiciousLine(places.get(lines[s.line - 1].strip()), s.kind) for s in secrets)


def refuse_secrets(text: str, source: KernelSource, settings: LlmSettings) -> None:
    """Raises ``UsageError`` naming line and kind, never the value."""
    file = PurePath(source.path).name
    for secret in suspicious_lines(text, source.text):
        if secret.line not in settings.harmless_lines:
            raise UsageError(
                f"nothing was sent: {secret.describe(file)} looks like {secret.kind}",
                next_step=f"take it out of the source, or declare the line harmless with "
                f"--allow-secret-lines {secret.line or 'N'} or the comment `{HARMLESS_COMMENT}`",
            )


def announce(
    messages: tuple[Message, ...],
    destination: str,
    source: KernelSource,
    settings: LlmSettings,
    spent: Spent,
    note: Callable[[str], None],
) -> None:
    """Tell the user what goes where, and what the session has spent before."""
    size = sum(len(message.content.encode("utf-8", "replace")) for message in messages)
    what = _CONTENT[settings.form].format(kernel=source.kernel, file=PurePath(source.path).name)
    if any(message.role == "assistant" for message in messages):
        what += ", the replies so far and what was wrong with them"
    note(
        f"llm: sending to {destination}, model {settings.model}: {size} bytes (about "
        f"{tokens_of(messages)} tokens): {what}, and figures of the run; no other file; "
        f"{_spent(spent, settings)}"
    )


def _spent(spent: Spent, settings: LlmSettings) -> str:
    tokens = f"so far {spent.tokens} of {settings.token_budget} tokens"
    if spent.money is None:
        return tokens
    limit = "" if settings.money_budget is None else f" of {settings.money_budget:g}"
    return f"{tokens}, money {spent.money:.4f}{limit}"
