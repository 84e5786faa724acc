"""What to try next: kernels of a language model (``llm``), or unrolling by rules (``deterministic``)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import BadDataError
from rpl_core.model.value_checks import require_value
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_llm_unroll.exchange import (
    FILE_NAME,
    Exchange,
    ExchangeLog,
    Spent,
    announce,
    budget_problem,
    clean_text,
    cost_of,
    digest_of,
    read_exchanges,
    refuse_secrets,
    spent_in,
)
from rpl_llm_unroll.hookspecs import LLM_CLIENTS
from rpl_llm_unroll.interfaces.client import Answer, Connection, Message
from rpl_llm_unroll.prompt.build import build_prompt
from rpl_llm_unroll.prompt.model import Prompt, find_target, repair_message, subject_of
from rpl_llm_unroll.reply import Problem, SoundReply, Target, judge_reply
from rpl_llm_unroll.samples import SAMPLES_FILE, Samples
from rpl_llm_unroll.settings import LlmSettings, read_settings
from rpl_optimize.interfaces.proposer import InstalledTransformation, ProposalRequest, Proposer
from rpl_optimize.interfaces.transformation import EditCandidate, GuardVerdict
from rpl_optimize.ranked import RankedProposer
from rpl_transforms.unroll import Unroll

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_core.plugins.host import Contribution
    from rpl_llm_unroll.interfaces.client import LlmClient
    from rpl_optimize.interfaces.proposer import Offered

# One proposal as a conversation: prompt, replies, what was wrong with them, the repairs that are
# left.


#: Repair turns of one proposal, whether its reply broke the contract or its build failed.
REPAIRS = 2
#: A longer reply is not sent back whole: it would spend the budget on itself (chosen).
_MOST_REPEATED = 64 << 10


def _say_nothing(_line: str) -> None:
    return None


@frozen
class NoProposal:
    """``guard`` names what stood against the proposal: ``budget`` or ``reply-contract``."""

    guard: str
    reason: str


@attrs.define(eq=False)
class Conversation:
    """Changes with every turn. ``known`` tells whether a kernel with this digest was tried before."""

    prompt: Prompt
    target: Target
    questions: Questions
    before_sending: Callable[[tuple[Message, ...], str], None]
    known: Callable[[str], bool]
    note: Callable[[str], None] = _say_nothing
    messages: tuple[Message, ...] = ()
    replies: tuple[str, ...] = ()
    repairs_left: int = REPAIRS

    def __attrs_post_init__(self) -> None:
        self.messages = self.messages or self.prompt.messages

    def ask(self) -> SoundReply | NoProposal:
        """Ask until a reply is sound, the repairs are used up, or the budget is."""
        while True:
            subject = subject_of(self.prompt.subject, *self.replies)
            exchange = self.questions.ask(self.messages, subject, self.before_sending)
            if isinstance(exchange, str):
                return NoProposal("budget", exchange)
            self._add_answer(exchange)
            judged = self._judge(exchange.answer)
            if not isinstance(judged, Problem):
                return judged
            if not self.ask_for_repair(judged.reason):
                self.note(f"llm: the reply is refused: {judged.reason}; no repair is left")
                return NoProposal("reply-contract", judged.reason)
            turn = f"repair {REPAIRS - self.repairs_left} of {REPAIRS}"
            self.note(f"llm: the reply is refused: {judged.reason}; {turn}")

    def ask_for_repair(self, problem: str) -> bool:
        """Add a repair turn; false when none is left."""
        if self.repairs_left == 0:
            return False
        self.repairs_left -= 1
        self.messages = (*self.messages, Message("user", repair_message(problem)))
        return True

    def _add_answer(self, exchange: Exchange) -> None:
        text = exchange.answer.text
        if len(text) > _MOST_REPEATED:
            text = f"{text[:_MOST_REPEATED]}\n[the rest is left out]"
        # Of a recorded exchange, what was said then: the conversation continues from there.
        self.messages = (*exchange.messages, Message("assistant", text or "(empty)"))
        self.replies = (*self.replies, exchange.answer.text)

    def _judge(self, answer: Answer) -> SoundReply | Problem:
        if answer.finish_reason == "length":
            return Problem("the reply was cut off at the limit of its length (--max-tokens); send less")
        if not answer.text.strip() and answer.refusal:
            return Problem(f"the model refused to answer: {answer.refusal[:200]}")
        if answer.finish_reason == "content_filter":
            return Problem("the endpoint's content filter cut the reply off")
        judged = judge_reply(answer.text, self.target)
        if not isinstance(judged, Problem) and self.known(judged.digest):
            return Problem("this kernel was tried before, see above; send a different one")
        return judged


_SHOWN_DIGITS = 12


class LlmProposer(Proposer):
    """Asks a model by an installed client; ``docs/llm.md`` lists the options.

    Raises ``UsageError`` for wrong options and for secrets in what would be sent, ``MissingError`` when the
    client gets no answer, ``BadDataError`` for a replay file that does not fit.
    """

    name = "llm"
    summary = "Ask a language model for a faster kernel, and check its reply as data."
    joins = False  # it asks somebody outside
    writes_code = True

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment
        self._questions: dict[object, Questions] = {}
        self._open: dict[str, Conversation] = {}
        self._samples: dict[Path | None, Samples] = {}

    def propose(self, request: ProposalRequest) -> EditCandidate | None:
        settings = read_settings(request.options)
        target = find_target(request)
        if isinstance(target, str):
            return _nothing(request, None, NoProposal("target", target), "no kernel to ask about")
        request = attrs.evolve(request, source=attrs.evolve(request.source, kernel=target.kernel.name))

        def ask(asked: ProposalRequest) -> EditCandidate | None:
            return self._ask(asked, target, settings)

        if settings.samples == 1 or request.try_out is None:
            return ask(request)
        if request.directory not in self._samples:
            path = None if request.directory is None else request.directory / SAMPLES_FILE
            self._samples[request.directory] = Samples(path)
        return self._samples[request.directory].fastest(request, settings.samples, ask, self.repair)

    def _ask(self, request: ProposalRequest, target: Target, settings: LlmSettings) -> EditCandidate | None:
        prompt = build_prompt(request, target, settings.form)
        questions = self._questions_for(request, settings)

        def before_sending(messages: tuple[Message, ...], destination: str) -> None:
            text = "\n".join(m.content for m in messages if m.role != "assistant")
            refuse_secrets(text, request.source, settings)
            announce(messages, destination, request.source, settings, questions.spent, request.note)

        def known(digest: str) -> bool:
            return any(f"({digest[:_SHOWN_DIGITS]})" in attempt.summary for attempt in request.attempts)

        conversation = Conversation(prompt, target, questions, before_sending, known, request.note)
        return self._candidate(request, conversation, settings)

    def repair(self, request: ProposalRequest, failed: EditCandidate, problem: str) -> EditCandidate | None:
        conversation = self._open.pop(failed.id, None)
        if conversation is None or not conversation.ask_for_repair(problem):
            return None
        return self._candidate(request, conversation, read_settings(request.options))

    def _candidate(
        self, request: ProposalRequest, conversation: Conversation, settings: LlmSettings
    ) -> EditCandidate | None:
        reply = conversation.ask()
        if isinstance(reply, NoProposal):
            what = f"no usable kernel {conversation.target.kernel.name} from {settings.model}"
            return _nothing(request, conversation.target, reply, what)
        candidate = _sound(reply, conversation.target, settings)
        self._open[candidate.id] = conversation
        return candidate

    def _questions_for(self, request: ProposalRequest, settings: LlmSettings) -> Questions:
        key = (request.directory, settings)
        if key not in self._questions:
            log = ExchangeLog(request.directory / FILE_NAME if request.directory is not None else None)
            self._questions[key] = Questions(
                settings, log, lambda: open_client(settings, request.offered, self._environment, request.note)
            )
        return self._questions[key]


def _sound(reply: SoundReply, target: Target, settings: LlmSettings) -> EditCandidate:
    kernel, digits = target.kernel, reply.digest[:_SHOWN_DIGITS]
    return EditCandidate(
        id=f"{kernel.name}-llm-{digits}",
        kernel=kernel.name,
        line=kernel.line,
        summary=f"kernel {kernel.name} as {_printable(settings.model)} rewrote it ({digits})",
        edits=(reply.edit,),
        guards=reply.guards,
    )


def _nothing(
    request: ProposalRequest, target: Target | None, why: NoProposal, what: str
) -> EditCandidate | None:
    """A proposal that came to nothing; ``None`` where trying again would end the same way."""
    lasting = why.guard in {"budget", "target"}
    summary = f"{_printable(what)}: {why.guard}" + ("" if lasting else f" ({len(request.attempts) + 1})")
    if any(attempt.summary == summary for attempt in request.attempts):
        return None
    return EditCandidate(
        id=f"llm-{why.guard}-{len(request.attempts) + 1}",
        kernel=request.source.kernel if target is None else target.kernel.name,
        line=1 if target is None else target.kernel.line,
        summary=summary,
        edits=(),
        guards=(GuardVerdict(why.guard, passed=False, reason=_printable(why.reason)),),
    )


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


# Propose unrolling alone, without a language model (``deterministic``).


class DeterministicProposer(RankedProposer):
    """Loops times factors in a fixed order, each screened by compiling it."""

    name = "deterministic"
    summary = "Unroll the loops of the heaviest kernel, screened by what they compile to."

    def __init__(self, unroll: Unroll | None = None) -> None:
        super().__init__((InstalledTransformation("transforms", unroll or Unroll()),))


# Answers for one session: from its own record first, then from a replayed file, then from the network.

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
