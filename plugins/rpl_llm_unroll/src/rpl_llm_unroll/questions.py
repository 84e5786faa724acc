"""Answers for one session: from its own record first, then from a replayed file, then from the network."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone

from rpl_core.errors import BadDataError
from rpl_core.text.table import counted
from rpl_llm_unroll.endpoint import Endpoint
from rpl_llm_unroll.exchange import (
    Exchange,
    ExchangeLog,
    Message,
    Spent,
    budget_problem,
    cost_of,
    digest_of,
    read_exchanges,
    spent_in,
)
from rpl_llm_unroll.settings import LlmSettings, read_settings


class Questions:
    """``connect`` makes the endpoint when the network is really needed."""

    def __init__(self, settings: LlmSettings, log: ExchangeLog, connect: Callable[[], Endpoint]) -> None:
        self._settings, self._log, self._connect = settings, log, connect
        self._endpoint: Endpoint | None = None
        self._recorded = list(log.read())
        self._kept: list[Exchange] = list(self._recorded)
        self._replayed = read_exchanges(settings.replay) if settings.replay is not None else None

    def ask(
        self,
        messages: tuple[Message, ...],
        subject: str,
        before_sending: Callable[[tuple[Message, ...]], None],
    ) -> Exchange | str:
        """The exchange for ``messages``, or why the budget does not allow it.

        What an interrupted part of this session asked about the same ``subject`` is not asked again.
        ``before_sending`` is called only if something leaves the machine.
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
            before_sending(messages)
            exchange = self._ask_network(messages, subject)
        self._log.append(exchange)
        self._kept.append(exchange)
        return exchange

    @property
    def spent(self) -> Spent:
        """What the session's exchanges took so far."""
        return spent_in(self._kept, self._settings)

    def _ask_network(self, messages: tuple[Message, ...], subject: str) -> Exchange:
        if self._endpoint is None:
            self._endpoint = self._connect()
        asked_at, begin = datetime.now(timezone.utc), time.monotonic()
        answer = self._endpoint.ask(messages)
        return Exchange(
            messages=messages,
            parameters=self._settings.parameters(),
            host=self._settings.host,
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


def require_ready(options: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Raises what the first proposal would raise for its options, its key or its replay file."""
    settings = read_settings(options, environment)
    if settings.replay is not None:
        read_exchanges(settings.replay)
    else:
        Endpoint(settings, environment, lambda _line: None)
