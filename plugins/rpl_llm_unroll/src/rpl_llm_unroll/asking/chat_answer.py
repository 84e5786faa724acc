"""Read the body of a chat completion. Fields that matter are checked; what else is there is ignored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rpl_core.errors import BadDataError
from rpl_llm_unroll.asking.budget import estimated_tokens, tokens_of
from rpl_llm_unroll.asking.exchange import Answer, Usage

if TYPE_CHECKING:
    from rpl_llm_unroll.asking.exchange import Message

_MOST_TOKENS = 10**9


def parse_answer(body: bytes, messages: tuple[Message, ...], host: str) -> Answer:
    """The first choice's message. Raises ``BadDataError`` when ``body`` is no chat completion."""
    try:
        document = json.loads(body)
        choice = document["choices"][0]
        message = dict(choice["message"].items())
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        raise BadDataError(
            f"the answer of {host} is no chat completion",
            cause="the base URL leads to something else",
            next_step="check --base-url; it usually ends in /v1",
        ) from None
    text = _clean(_content(message.get("content")))
    return Answer(
        text=text,
        finish_reason=_optional(choice.get("finish_reason")),
        usage=_usage(document.get("usage"), messages, text),
        model=_optional(document.get("model")),
        refusal=_optional(message.get("refusal")),
    )


def _content(content: Any) -> str:
    """Text, or the text parts of a list of parts, as some endpoints send them."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


def _clean(text: str) -> str:
    """``text`` without lone surrogates, which no file could hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _optional(value: Any) -> str | None:
    return _clean(value[:2000]) if isinstance(value, str) else None


def _usage(usage: Any, messages: tuple[Message, ...], text: str) -> Usage:
    given = [usage.get(name) if isinstance(usage, dict) else None for name in _COUNTS]
    counts = [v for v in given if isinstance(v, int) and not isinstance(v, bool) and 0 <= v <= _MOST_TOKENS]
    if len(counts) == len(_COUNTS):
        return Usage(counts[0], counts[1])
    return Usage(tokens_of(messages), estimated_tokens(text), estimated=True)


_COUNTS = ("prompt_tokens", "completion_tokens")
