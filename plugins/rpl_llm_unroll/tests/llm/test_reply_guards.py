"""Each check of replies is needed: without it, some bad reply gets another answer."""

from __future__ import annotations

import pytest

from rpl_llm_unroll import reply
from rpl_llm_unroll.reply import Problem, SoundReply, judge_reply

from .sources import GOOD, fenced, target
from .test_replies import BAD_REPLIES

_CASES = {name: reply for name, (reply, _) in BAD_REPLIES.items() if len(reply) < 10_000}
_CHECKS = ("character_problem", "whole_kernel_problem", "syntax_problem", "use_problem")


def _answers() -> dict[str, str | None]:
    """The problem of each reply, ``None`` where it gets through."""
    judged = {name: judge_reply(reply, target()) for name, reply in _CASES.items()}
    return {name: found.reason if isinstance(found, Problem) else None for name, found in judged.items()}


@pytest.fixture(scope="module")
def as_released():
    answers = _answers()
    assert None not in answers.values()
    return answers


@pytest.mark.parametrize("name", _CHECKS)
def test_every_check_of_the_block_is_needed(as_released, name, monkeypatch):
    monkeypatch.setattr(reply, name, lambda *_: None)
    assert _answers() != as_released


@pytest.mark.parametrize("guard", ["directives", "words"])
def test_every_guard_on_tokens_is_needed(as_released, guard, monkeypatch):
    verdicts = reply.token_verdicts

    def without(*arguments):
        return tuple(v for v in verdicts(*arguments) if v.guard != guard)

    monkeypatch.setattr(reply, "token_verdicts", without)
    assert None in _answers().values()


def test_a_sound_reply_names_every_guard_that_it_passed():
    sound = judge_reply(fenced(GOOD), target())
    assert isinstance(sound, SoundReply)
    assert [guard.guard for guard in sound.guards] == ["directives", "words"]
