"""What a session may spend in tokens and money, and what it has spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.text.table import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rpl_llm_unroll.asking.exchange import Exchange, Message, Usage
    from rpl_llm_unroll.asking.settings import LlmSettings

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
