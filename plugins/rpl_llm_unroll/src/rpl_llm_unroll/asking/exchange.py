"""One question to a model and its answer, as it is recorded: a line of JSON without key and headers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import attrs
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rpl_analysis.contracts.record import Limited, record
from rpl_core.errors import BadDataError
from rpl_core.values import frozen

Role = Literal["system", "user", "assistant"]
VERSION = "1.0"


@record
class Message:
    role: Role
    content: str


@record
class Usage:
    """Tokens as the endpoint counted them; ``estimated`` where it did not, from the texts' sizes."""

    prompt_tokens: Annotated[int, Limited(ge=0)]
    completion_tokens: Annotated[int, Limited(ge=0)]
    estimated: bool = False

    @property
    def total(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@record
class Answer:
    """``text`` is the reply, empty where the model sent none; ``refusal`` is its own word for that."""

    text: str
    finish_reason: str | None
    usage: Usage
    model: str | None = None
    refusal: str | None = None


@frozen
class Exchange:
    """``subject`` identifies what was asked about, whatever the figures in the messages were.

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
    usage = Usage(told.usage.prompt_tokens, told.usage.completion_tokens, told.usage.estimated)
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
