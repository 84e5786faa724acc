"""What to try next: kernels of a language model (``llm``), or unrolling by rules (``deterministic``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import attrs

from rpl_core.values import frozen
from rpl_llm_unroll.disclosure import announce, refuse_secrets
from rpl_llm_unroll.exchange import FILE_NAME, Exchange, ExchangeLog
from rpl_llm_unroll.interfaces.client import Answer, Message
from rpl_llm_unroll.prompt.build import build_prompt
from rpl_llm_unroll.prompt.model import Prompt, find_target, repair_message, subject_of
from rpl_llm_unroll.questions import Questions, open_client
from rpl_llm_unroll.reply import Problem, SoundReply, Target, judge_reply
from rpl_llm_unroll.settings import LlmSettings, read_settings
from rpl_optimize.interfaces.proposer import InstalledTransformation, ProposalRequest, Proposer
from rpl_optimize.interfaces.transformation import EditCandidate, GuardVerdict
from rpl_optimize.ranked import RankedProposer
from rpl_transforms.unroll import Unroll

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

    def propose(self, request: ProposalRequest) -> EditCandidate | None:
        settings = read_settings(request.options)
        target = find_target(request)
        if isinstance(target, str):
            return _nothing(request, None, NoProposal("target", target), "no kernel to ask about")
        request = attrs.evolve(request, source=attrs.evolve(request.source, kernel=target.kernel.name))
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
