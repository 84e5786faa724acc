"""What is asked of a model and what it answers: messages, what they cost, the record, and what may not leave.

An exchange is one line of JSON without key and headers. A session's exchanges are kept in its directory, so
that what was paid for is not asked again.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import attrs
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.files import read_regular
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_llm_unroll.interfaces.client import Answer, Message, Usage

if TYPE_CHECKING:
    from detect_secrets.plugins.base import BasePlugin

    from rpl_llm_unroll.settings import LlmSettings
    from rpl_optimize.interfaces.transformation import KernelSource

VERSION = "1.0"


@frozen
class Exchange:
    """``host`` is the destination. ``subject`` identifies what was asked about, whatever the figures were.

    ``cost`` is in the currency of the prices, ``None`` where they are unknown. ``line`` is the recorded line.
    """

    messages: tuple[Message, ...]
    parameters: Mapping[str, Any]
    host: str
    subject: str
    answer: Answer
    cost: float | None
    asked_at: str
    wall_s: float

    @property
    def messages_sha256(self) -> str:
        return digest_of(self.messages)

    def line(self) -> str:
        """The record, one line with its end."""
        plain = {
            "version": VERSION,
            "host": self.host,
            "parameters": dict(self.parameters),
            "subject_sha256": self.subject,
            "messages_sha256": self.messages_sha256,
            "messages": [attrs.asdict(message) for message in self.messages],
            "answer": attrs.asdict(self.answer),
            "cost": self.cost,
            "asked_at": self.asked_at,
            "wall_s": self.wall_s,
        }
        return json.dumps(plain, ensure_ascii=True, allow_nan=False, separators=(",", ":")) + "\n"


def clean_text(text: str) -> str:
    """``text`` without lone surrogates, which no file could hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def digest_of(messages: tuple[Message, ...]) -> str:
    """SHA-256 over roles and texts in order."""
    plain = [[message.role, message.content] for message in messages]
    return hashlib.sha256(json.dumps(plain, ensure_ascii=True).encode()).hexdigest()


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _ExchangePart(_Part):
    version: str = Field(pattern=r"^1\.[0-9]+$")
    host: str
    parameters: dict[str, str | int | float]
    subject_sha256: str
    messages_sha256: str
    messages: tuple[Message, ...]
    answer: Answer
    cost: float | None
    asked_at: str
    wall_s: float


def parse_exchange(line: str, where: str) -> Exchange:
    """Read one recorded line. Raises ``BadDataError`` naming ``where`` for anything else."""
    try:
        part = _ExchangePart.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(piece) for piece in first["loc"])
        raise BadDataError(f"{where} is no recorded exchange: {place} {first['msg']}".strip()) from None
    told = part.answer
    try:
        usage = Usage(told.usage.prompt_tokens, told.usage.completion_tokens, told.usage.estimated)
    except ValueError as error:
        raise BadDataError(f"{where} is no recorded exchange: {error}") from None
    exchange = Exchange(
        messages=tuple(Message(m.role, m.content) for m in part.messages),
        parameters=part.parameters,
        host=part.host,
        subject=part.subject_sha256,
        answer=Answer(told.text, told.finish_reason, usage, told.model, told.refusal),
        cost=part.cost,
        asked_at=part.asked_at,
        wall_s=part.wall_s,
    )
    if exchange.messages_sha256 != part.messages_sha256:
        raise BadDataError(
            f"{where}: the messages do not have the recorded hash", cause="the file was changed"
        )
    return exchange


# What a session may spend in tokens and money, and what it has spent.

#: UTF-8 bytes per token of code and English, as tokenizers in use split it, on the careful side (chosen).
BYTES_PER_TOKEN = 3


@frozen
class Spent:
    """Sums over a session; ``money`` is ``None`` while no price is known."""

    tokens: int
    money: float | None


def estimated_tokens(text: str) -> int:
    """About how many tokens ``text`` has: one per three bytes."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def tokens_of(messages: Iterable[Message]) -> int:
    return sum(estimated_tokens(message.content) for message in messages)


def cost_of(usage: Usage, settings: LlmSettings) -> float | None:
    """What an exchange costs by the user's prices; ``None`` without them."""
    if settings.price_in is None or settings.price_out is None:
        return None
    return (usage.prompt_tokens * settings.price_in + usage.completion_tokens * settings.price_out) / 1e6


def spent_in(exchanges: Iterable[Exchange], settings: LlmSettings) -> Spent:
    """The sums; recorded tokens are counted at today's prices."""
    tokens, money = 0, 0.0
    for exchange in exchanges:
        tokens += exchange.answer.usage.total
        money += cost_of(exchange.answer.usage, settings) or 0.0
    return Spent(tokens, money if settings.price_in is not None else None)


def budget_problem(messages: tuple[Message, ...], spent: Spent, settings: LlmSettings) -> str | None:
    """Why the next request does not fit the budget: its estimate and the longest reply count as used."""
    prompt = tokens_of(messages)
    needed = prompt + settings.max_tokens
    if spent.tokens + needed > settings.token_budget:
        return (
            f"{spent.tokens} of {counted(settings.token_budget, 'token')} are used, and the next request "
            f"may take {needed} (--token-budget, --max-tokens)"
        )
    if settings.money_budget is not None and settings.price_in is not None and settings.price_out is not None:
        price = (prompt * settings.price_in + settings.max_tokens * settings.price_out) / 1e6
        if (spent.money or 0.0) + price > settings.money_budget:
            return (
                f"{spent.money or 0.0:.4f} of {settings.money_budget:g} are spent, and the next request may "
                f"cost {price:.4f} (--money-budget, --max-tokens)"
            )
    return None


# The file of exchanges: appended and synced before a reply is used, read back whole.

FILE_NAME = "exchanges.jsonl"
#: A session has a few dozen exchanges of a few hundred kilobytes (chosen).
_MAX_FILE_BYTES = 256 << 20


@frozen
class ExchangeLog:
    """``path`` is made with its first exchange; ``None`` keeps no record."""

    path: Path | None

    def append(self, exchange: Exchange) -> None:
        """Write one line and wait until it is on the disk. Raises ``OSError`` with the file's name."""
        if self.path is None:
            return
        line = exchange.line().encode("ascii")
        with self.path.open("ab") as file:
            if _ends_torn(self.path):
                line = b"\n" + line
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> tuple[Exchange, ...]:
        """What an earlier part of this session recorded. A torn last line is what a crash leaves: ignored."""
        if self.path is None or not self.path.is_file():
            return ()
        return _read(self.path, torn_line_is_error=False)


def read_exchanges(path: Path) -> tuple[Exchange, ...]:
    """The exchanges of a file that the user named.

    Raises ``MissingError`` without it and ``BadDataError`` for damage.
    """
    if not path.is_file():
        raise MissingError(f"no recorded exchanges at {path}", next_step="check --replay-llm")
    return _read(path, torn_line_is_error=True)


def _read(path: Path, *, torn_line_is_error: bool) -> tuple[Exchange, ...]:
    try:
        lines = read_regular(path, _MAX_FILE_BYTES).decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise BadDataError(f"{path} holds no recorded exchanges: it is not ASCII") from None
    last = len(lines) - 1  # behind the last line feed: empty, or torn
    exchanges = []
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            exchanges.append(parse_exchange(line, f"{path}, line {number + 1}"))
        except BadDataError:
            # A torn line stays in the file when the session went on behind it.
            if torn_line_is_error and number == last:
                raise
            if number != last and line.endswith("}"):
                raise
    return tuple(exchanges)


def _ends_torn(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return False
        file.seek(size - 1)
        return file.read(1) != b"\n"


# Before anything leaves the machine: say what, and stop at what looks like a key, token or password.


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
