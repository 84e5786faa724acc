"""Settings of a session with a language model, from ``ProposalRequest.options``; the key is never one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from rpl_core.errors import UsageError
from rpl_core.values import frozen

DEFAULT_BASE_URL = "https://api.openai.com/v1"
#: A kernel of a few hundred lines with room for a model's reasoning (chosen).
DEFAULT_MAX_TOKENS = 16_384
DEFAULT_TOKEN_BUDGET = 200_000
DEFAULT_TIMEOUT_S = 300.0

Form = Literal["standard", "compact", "full-source"]
FORMS: tuple[Form, ...] = ("standard", "compact", "full-source")


@frozen
class LlmSettings:
    """``price_in`` and ``price_out`` are per million tokens, in the currency of ``money_budget``.

    ``replay`` answers from a file of recorded exchanges; nothing is sent then. ``harmless_lines`` of the
    source may look like secrets.
    """

    model: str
    base_url: str = DEFAULT_BASE_URL
    temperature: float | None = None
    seed: int | None = None
    max_tokens: int = DEFAULT_MAX_TOKENS
    token_budget: int = DEFAULT_TOKEN_BUDGET
    money_budget: float | None = None
    price_in: float | None = None
    price_out: float | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    form: Form = "standard"
    replay: Path | None = None
    replay_other_figures: bool = False
    harmless_lines: frozenset[int] = frozenset()

    @property
    def host(self) -> str:
        """Where requests go, without path."""
        parts = urlsplit(self.base_url)
        return parts.netloc

    def parameters(self) -> dict[str, str | int | float]:
        """What a request says besides its messages; unset options are left to the endpoint."""
        chosen = {"model": self.model, "temperature": self.temperature, "seed": self.seed}
        found = {name: value for name, value in chosen.items() if value is not None}
        return {**found, "max_tokens": self.max_tokens}


def read_settings(options: Mapping[str, str], environment: Mapping[str, str]) -> LlmSettings:
    """The settings. Raises ``UsageError`` for impossible values and for a money budget without prices.

    The only variable that is looked at is ``OPENAI_BASE_URL``.
    """
    unknown = sorted(options.keys() - OPTION_NAMES)
    if unknown:
        raise UsageError(f"the proposer 'llm' has no option {unknown[0]!r}")
    if not options.get("model"):
        raise UsageError("no model is named", next_step="add --model NAME")
    values: dict[str, Any] = {}
    for name, (field, parse) in _OPTIONS.items():
        if name in options:
            values[field] = parse(name, options[name])
    if "base_url" not in values and environment.get("OPENAI_BASE_URL"):
        values["base_url"] = _endpoint("OPENAI_BASE_URL", environment["OPENAI_BASE_URL"])
    settings = LlmSettings(**values)
    if settings.money_budget is not None and None in (settings.price_in, settings.price_out):
        raise UsageError(
            "a money budget needs to know what tokens cost",
            next_step="add --price-in and --price-out, per million tokens",
        )
    return settings


def _text(_name: str, text: str) -> str:
    return text


def _number(low: float, high: float) -> Callable[[str, str], float]:
    def parse(name: str, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise UsageError(f"--{name}: expected a number from {low:g} to {high:g}, found {text!r}")
        return value

    return parse


def _integer(low: int, high: int) -> Callable[[str, str], int]:
    def parse(name: str, text: str) -> int:
        digits = text.removeprefix("-")
        value = int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else low - 1
        if not low <= value <= high:
            raise UsageError(f"--{name}: expected a whole number from {low} to {high}, found {text!r}")
        return value

    return parse


def _flag(name: str, text: str) -> bool:
    if text not in {"true", "false"}:
        raise UsageError(f"--{name}: expected true or false, found {text!r}")
    return text == "true"


def _form(name: str, text: str) -> Form:
    for form in FORMS:
        if text == form:
            return form
    raise UsageError(f"--{name}: expected one of {', '.join(FORMS)}, found {text!r}")


def _path(_name: str, text: str) -> Path:
    return Path(text)


def _lines(name: str, text: str) -> frozenset[int]:
    return frozenset(_integer(1, 10**9)(name, part.strip()) for part in text.split(",") if part.strip())


def _endpoint(name: str, text: str) -> str:
    """A base URL. Its text is never shown whole: a password may be in it."""
    place = name if name.isupper() else f"--{name}"
    try:
        parts = urlsplit(text.strip())
        _ = parts.port
    except ValueError:
        raise UsageError(f"{place} is no URL") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"{place} is no http or https URL", next_step=f"for example {DEFAULT_BASE_URL}")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise UsageError(
            f"{place} holds a user name, a query or a fragment",
            next_step="leave them out; the key belongs into OPENAI_API_KEY",
        )
    return text.strip().rstrip("/")


_OPTIONS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "model": ("model", _text),
    "base-url": ("base_url", _endpoint),
    "temperature": ("temperature", _number(0, 2)),
    "seed": ("seed", _integer(-(2**63), 2**63 - 1)),
    "max-tokens": ("max_tokens", _integer(1, 1_000_000)),
    "token-budget": ("token_budget", _integer(1, 10**12)),
    "money-budget": ("money_budget", _number(0, 1e9)),
    "price-in": ("price_in", _number(0, 1e6)),
    "price-out": ("price_out", _number(0, 1e6)),
    "llm-timeout": ("timeout_s", _number(0.05, 86_400)),
    "prompt": ("form", _form),
    "replay-llm": ("replay", _path),
    "replay-other-figures": ("replay_other_figures", _flag),
    "allow-secret-lines": ("harmless_lines", _lines),
}
OPTION_NAMES = frozenset(_OPTIONS)
