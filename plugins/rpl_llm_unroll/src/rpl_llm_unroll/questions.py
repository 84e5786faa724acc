"""Answers for one session: from its own record first, then from a replayed file, then from the network."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import BadDataError
from rpl_core.model.value_checks import require_value
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.text import counted
from rpl_llm_unroll.exchange import (
    Exchange,
    ExchangeLog,
    Spent,
    budget_problem,
    clean_text,
    cost_of,
    digest_of,
    read_exchanges,
    spent_in,
)
from rpl_llm_unroll.hookspecs import LLM_CLIENTS
from rpl_llm_unroll.interfaces.client import Answer, Connection, Message
from rpl_llm_unroll.settings import LlmSettings, read_settings

if TYPE_CHECKING:
    from rpl_core.plugins.host import Contribution
    from rpl_llm_unroll.interfaces.client import LlmClient
    from rpl_optimize.interfaces.proposer import Offered

#: As many as the largest answer of an endpoint has bytes (``MAX_ANSWER_BYTES`` of ``endpoint``).
MAX_ANSWER_CHARACTERS = 8 << 20


class Questions:
    """``connect`` makes the client's connection when somebody outside is really needed."""

    def __init__(self, settings: LlmSettings, log: ExchangeLog, connect: Callable[[], Connection]) -> None:
        self._settings, self._log, self._connect = settings, log, connect
        self._connection: Connection | None = None
        self._recorded = list(log.read())
        self._kept: list[Exchange] = list(self._recorded)
        self._replayed = read_exchanges(settings.replay) if settings.replay is not None else None

    def ask(
        self,
        messages: tuple[Message, ...],
        subject: str,
        before_sending: Callable[[tuple[Message, ...], str], None],
    ) -> Exchange | str:
        """The exchange for ``messages``, or why the budget does not allow it.

        What an interrupted part of this session asked about the same ``subject`` is not asked again.
        ``before_sending`` is told the destination, only if something leaves the machine.
        """
        for exchange in self._recorded:
            if exchange.subject == subject:
                self._recorded.remove(exchange)
                return exchange
        if self._replayed is not None:
            exchange = self._replay(messages, subject, self._replayed)
        else:
            problem = budget_problem(messages, self.spent, self._settings)
            if problem is not None:
                return problem
            if self._connection is None:
                self._connection = self._connect()
            before_sending(messages, self._connection.destination)
            exchange = self._ask_client(self._connection, messages, subject)
        self._log.append(exchange)
        self._kept.append(exchange)
        return exchange

    @property
    def spent(self) -> Spent:
        """What the session's exchanges took so far."""
        return spent_in(self._kept, self._settings)

    def _ask_client(self, connection: Connection, messages: tuple[Message, ...], subject: str) -> Exchange:
        asked_at, begin = datetime.now(timezone.utc), time.monotonic()
        answer = connection.ask(messages)
        return Exchange(
            messages=messages,
            parameters=self._settings.parameters(),
            host=connection.destination,
            subject=subject,
            answer=answer,
            cost=cost_of(answer.usage, self._settings),
            asked_at=asked_at.isoformat(timespec="seconds"),
            wall_s=round(time.monotonic() - begin, 3),
        )

    def _replay(
        self, messages: tuple[Message, ...], subject: str, replayed: tuple[Exchange, ...]
    ) -> Exchange:
        # Every exchange of this session came from the file, in its order.
        number = len(self._kept)
        where = f"{self._settings.replay}, exchange {number + 1}"
        if number >= len(replayed):
            raise BadDataError(
                f"{self._settings.replay} holds {counted(len(replayed), 'exchange')}, "
                "and the run asks for one more",
                next_step="replay with the source and options of the recorded run",
            )
        exchange = replayed[number]
        if digest_of(messages) == exchange.messages_sha256:
            return exchange
        if exchange.subject != subject:
            raise BadDataError(
                f"{where} was recorded for another question",
                cause="the source, the kernel, the form of the prompt or an earlier verdict differs",
                next_step="replay with the source and options of the recorded run",
            )
        if self._settings.replay_other_figures:
            return exchange
        raise BadDataError(
            f"{where} was recorded with other figures of the same kernel",
            cause="the program was measured anew, or the tools differ",
            next_step="add --replay-other-figures to take the recorded replies nevertheless",
        )


class _Bounded(Connection):
    """A client's connection inside the boundary that names its plugin; what comes back is looked at."""

    def __init__(self, connection: Connection, client: Contribution[LlmClient]) -> None:
        self._connection, self._client = connection, client
        self.destination = require_value(connection.destination, str)

    def ask(self, messages: tuple[Message, ...]) -> Answer:
        with plugin_boundary(self._client.plugin, f"LLM client {self._client.value.name!r}"):
            answer = require_value(self._connection.ask(messages), Answer)
        if len(answer.text) > MAX_ANSWER_CHARACTERS:
            raise BadDataError(f"the answer has more than {MAX_ANSWER_CHARACTERS} characters")
        return attrs.evolve(answer, text=clean_text(answer.text))


def open_client(
    settings: LlmSettings,
    offered: Offered,
    environment: Mapping[str, str],
    note: Callable[[str], None],
) -> Connection:
    """By the client that the settings name. Raises ``MissingError`` where nobody offers it."""
    clients = offered(LLM_CLIENTS)
    clients.get(settings.client)  # says which there are
    client = next(c for c in clients.contributions if c.value.name == settings.client)
    with plugin_boundary(client.plugin, f"LLM client {settings.client!r}"):
        connection = client.value.connection(settings, environment, note)
        if not isinstance(connection, Connection):
            raise TypeError(f"connection() gave {type(connection).__name__}, which is no Connection")
        return _Bounded(connection, client)


def require_ready(options: Mapping[str, str], offered: Offered, environment: Mapping[str, str]) -> None:
    """Raises what the first proposal would raise for its options, its client or its replay file."""
    settings = read_settings(options)
    if settings.replay is not None:
        read_exchanges(settings.replay)
    else:
        open_client(settings, offered, environment, lambda _line: None)
