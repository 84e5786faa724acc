"""Clients carry one question to a language model. Prompt, checks, budget and record are not theirs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Literal

from rpl_analysis.contracts import record
from rpl_core.cli.command_options import option
from rpl_core.config import number_within, text, whole_within
from rpl_core.interfaces.options import SettingKind
from rpl_core.values import frozen

Role = Literal["system", "user", "assistant"]
#: A kernel of a few hundred lines with room for a model's reasoning (chosen).
DEFAULT_MAX_TOKENS = 16_384
DEFAULT_TIMEOUT_S = 300.0


@record
class Message:
    role: Role
    content: str


@record
class Usage:
    """Tokens as the endpoint counted them; ``estimated`` where it did not, from the texts' sizes."""

    prompt_tokens: int
    completion_tokens: int
    estimated: bool = False

    def __attrs_post_init__(self) -> None:
        if self.prompt_tokens < 0 or self.completion_tokens < 0:
            raise ValueError("nothing takes fewer than no tokens")

    @property
    def total(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@record
class Answer:
    """``text`` is the reply, empty where the model sent none; ``refusal`` is its own word for that.

    ``finish_reason`` is OpenAI's word: "length" for a reply that was cut off, "content_filter".
    """

    text: str
    finish_reason: str | None
    usage: Usage
    model: str | None = None
    refusal: str | None = None


@frozen
class ModelRequest:
    """What the user wants of a model. ``None``: not said, left to the client or its endpoint.

    ``base_url`` is an http or https URL without user name and query. ``timeout_s`` is for one reply.
    """

    model: str = option(
        "--model",
        setting="plugins.llm-unroll.model",
        kind=SettingKind.VALUE,
        parse=text,
        metavar="NAME",
        help="The model, as its endpoint calls it.",
    )
    base_url: str | None = option(
        "--base-url",
        setting="plugins.llm-unroll.base-url",
        kind=SettingKind.ENDPOINT,
        parse=text,  # by the client: what is no address for one may be one for another
        unsaid=None,
        metavar="URL",
        help="Endpoint (default: OPENAI_BASE_URL, else https://api.openai.com/v1).",
    )
    temperature: float | None = option(
        "--temperature",
        setting="plugins.llm-unroll.temperature",
        kind=SettingKind.VALUE,
        parse=number_within(0, 2),
        unsaid=None,
        type=float,
        help="Sampling temperature (default: the endpoint's).",
    )
    seed: int | None = option(
        "--seed",
        setting="plugins.llm-unroll.seed",
        kind=SettingKind.VALUE,
        parse=whole_within(-(2**63), 2**63 - 1),
        unsaid=None,
        type=int,
        help="Sampling seed (default: none).",
    )
    max_tokens: int = option(
        "--max-tokens",
        setting="plugins.llm-unroll.max-tokens",
        kind=SettingKind.VALUE,
        parse=whole_within(1, 1_000_000),
        unsaid=DEFAULT_MAX_TOKENS,
        type=int,
        metavar="N",
        help="Longest reply (default 16384 tokens).",
    )
    timeout_s: float = option(
        "--llm-timeout",
        setting="plugins.llm-unroll.llm-timeout",
        kind=SettingKind.VALUE,
        parse=number_within(0.05, 86_400),
        unsaid=DEFAULT_TIMEOUT_S,
        type=float,
        metavar="S",
        help="Seconds for one reply (default 300).",
    )

    def parameters(self) -> dict[str, str | int | float]:
        """What a request says besides its messages; unset options are left to the endpoint."""
        chosen = {"model": self.model, "temperature": self.temperature, "seed": self.seed}
        found = {name: value for name, value in chosen.items() if value is not None}
        return {**found, "max_tokens": self.max_tokens}


class Connection(ABC):
    """``destination`` says where questions go, as a host or in a few words: it is told and recorded."""

    destination: str

    @abstractmethod
    def ask(self, messages: tuple[Message, ...]) -> Answer:
        """The reply, bounded in time and size.

        Raises ``MissingError`` when there is none and ``BadDataError`` for one that can't be read.
        """


class LlmClient(ABC):
    """A way to ask a language model; ``rpl llm-optimize --llm-client NAME`` picks one."""

    name: str
    summary: str

    @abstractmethod
    def connection(
        self, request: ModelRequest, environment: Mapping[str, str], note: Callable[[str], None]
    ) -> Connection:
        """Ready to ask; nothing is sent yet. ``environment`` may hold a key, ``note`` tells the user a line.

        Raises ``UsageError`` for what can't be asked so, ``MissingError`` where a key or a program lacks.
        """
