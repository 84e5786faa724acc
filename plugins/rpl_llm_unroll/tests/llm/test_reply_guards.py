"""Each guard on replies is needed: without it, some bad reply gets another answer."""

from __future__ import annotations

import pytest

from rpl_llm_unroll.reply import judge, token_guards
from rpl_llm_unroll.reply.judge import judge_reply
from rpl_llm_unroll.reply.model import Problem, SoundReply
from rpl_optimize.interfaces.transformation import GuardVerdict

from .sources import GOOD, KERNEL, SOURCE, fenced, target
from .test_replies import BAD_REPLIES

_KEEPS_VOLATILE = SOURCE.replace(b"  int i = blockIdx", b"  volatile int kept = n;\n  int i = blockIdx")
#: Replies, and the source that each is about.
_CASES = {name: (reply, SOURCE) for name, (reply, _) in BAD_REPLIES.items() if len(reply) < 10_000}
_CASES["volatile dropped"] = (
    fenced(GOOD.replace("  int i = blockIdx", "  int kept = n;\n  int i = blockIdx")),
    _KEEPS_VOLATILE,
)
_SINGLE = ("character_problem", "whole_kernel_problem", "syntax_problem", "use_problem")
_COOPERATION = ("synchronisation", "uniform-barriers", "volatile-kept")


@pytest.fixture(scope="module")
def about():
    halting = {
        source: source.replace(b"#define SYNC", b'#define HALT asm("s_endpgm")\n#define SYNC')
        for source in (SOURCE, _KEEPS_VOLATILE)
    }
    return {source: target(text) for source, text in halting.items()}


def _answers(about) -> dict[str, str | None]:
    """The problem of each reply, ``None`` where it gets through."""
    judged = {name: judge_reply(reply, about[source]) for name, (reply, source) in _CASES.items()}
    return {name: found.reason if isinstance(found, Problem) else None for name, found in judged.items()}


@pytest.fixture(scope="module")
def as_released(about):
    answers = _answers(about)
    assert None not in answers.values()
    return answers


def _passing(guard: str) -> GuardVerdict:
    return GuardVerdict(guard, True, "switched off")


@pytest.mark.parametrize("guard", token_guards._GUARDS, ids=lambda guard: guard.__name__)
def test_every_guard_on_tokens_is_needed(about, as_released, guard, monkeypatch):
    rest = tuple(other for other in token_guards._GUARDS if other is not guard)
    monkeypatch.setattr(token_guards, "_GUARDS", rest)
    assert None in _answers(about).values()


@pytest.mark.parametrize("name", _SINGLE)
def test_every_check_of_the_block_is_needed(about, as_released, name, monkeypatch):
    monkeypatch.setattr(judge, name, lambda *_: None)
    assert _answers(about) != as_released


def test_the_guard_on_macros_is_needed(about, as_released, monkeypatch):
    monkeypatch.setattr(judge, "macro_verdict", lambda *_: _passing("macros"))
    assert None in _answers(about).values()


@pytest.mark.parametrize("guard", _COOPERATION)
def test_every_guard_on_what_work_items_do_together_is_needed(about, as_released, guard, monkeypatch):
    verdicts = judge.cooperation_verdicts

    def without(*arguments):
        return tuple(v for v in verdicts(*arguments) if v.guard != guard)

    monkeypatch.setattr(judge, "cooperation_verdicts", without)
    assert None in _answers(about).values()


def test_the_parse_tree_refuses_a_changed_head_on_its_own(about, monkeypatch):
    """Tokens refuse it first; the comparison of trees must not depend on that."""
    monkeypatch.setattr(judge, "whole_kernel_problem", lambda *_: None)
    monkeypatch.setattr(judge, "token_verdicts", lambda *_: ())
    changed = fenced(GOOD.replace("(256)", "(1024)"))
    assert "guard kernel-attributes" in judge_reply(changed, about[SOURCE]).reason
    monkeypatch.setattr(judge, "check_invariance", lambda *_: ())
    assert isinstance(judge_reply(changed, about[SOURCE]), SoundReply)


def test_a_sound_reply_names_every_guard_that_it_passed(about):
    sound = judge_reply(fenced(GOOD), about[SOURCE])
    assert isinstance(sound, SoundReply), KERNEL
    names = {guard.guard for guard in sound.guards}
    assert names >= {"directives", "words", "builtins", "literals", "signs", "macros", *_COOPERATION}
    assert names >= {"kernel-name", "kernel-template", "kernel-attributes", "kernel-parameters", "outside"}
