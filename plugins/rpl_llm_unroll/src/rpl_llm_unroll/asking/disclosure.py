"""Before anything leaves the machine: say what, and stop at what looks like a secret."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from rpl_core.errors import UsageError
from rpl_core.values import frozen
from rpl_llm_unroll.asking.budget import tokens_of
from rpl_llm_unroll.asking.secrets import HARMLESS_COMMENT, find_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from rpl_llm_unroll.asking.budget import Spent
    from rpl_llm_unroll.asking.exchange import Message
    from rpl_llm_unroll.asking.settings import LlmSettings
    from rpl_optimize.interfaces.transformation import KernelSource

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
        f"llm: sending to {settings.host}, model {settings.model}: {size} bytes (about "
        f"{tokens_of(messages)} tokens): {what}, and figures of the run; no other file; "
        f"{_spent(spent, settings)}"
    )
    if settings.base_url.startswith("http://") and not _is_local(settings.host):
        note("llm: the connection is not encrypted (http)")


def _spent(spent: Spent, settings: LlmSettings) -> str:
    tokens = f"so far {spent.tokens} of {settings.token_budget} tokens"
    if spent.money is None:
        return tokens
    limit = "" if settings.money_budget is None else f" of {settings.money_budget:g}"
    return f"{tokens}, money {spent.money:.4f}{limit}"


def _is_local(host: str) -> bool:
    return host.rsplit(":", 1)[0] in {"localhost", "127.0.0.1", "[::1]"}
