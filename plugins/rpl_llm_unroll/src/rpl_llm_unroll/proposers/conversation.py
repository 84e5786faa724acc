"""One proposal as a conversation: prompt, replies, what was wrong with them, the repairs that are left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.values import frozen
from rpl_llm_unroll.asking.exchange import Message
from rpl_llm_unroll.prompt.contract import repair_message
from rpl_llm_unroll.prompt.model import subject_of
from rpl_llm_unroll.reply.judge import judge_reply
from rpl_llm_unroll.reply.model import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from rpl_llm_unroll.asking.exchange import Answer, Exchange
    from rpl_llm_unroll.asking.questions import Questions
    from rpl_llm_unroll.prompt.model import Prompt
    from rpl_llm_unroll.reply.model import SoundReply, Target

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
    before_sending: Callable[[tuple[Message, ...]], None]
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
