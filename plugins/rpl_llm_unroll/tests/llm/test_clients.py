"""Clients of others: asked like the built-in one, bounded, and named where they fail."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rpl_core.errors import BadDataError, MissingError, PluginError
from rpl_llm_unroll.exchange import parse_exchange
from rpl_llm_unroll.interfaces.client import Answer, Connection, LlmClient, Usage

from .sources import GOOD, SOURCE, fenced

PAGE = Path(__file__).parents[4] / "docs" / "plugins" / "kinds" / "llm-clients.md"


class _Client(LlmClient, Connection):
    """What a stranger may write: ``answer`` is given, or raised."""

    name, summary, destination = "strange", "Answers by script.", "a room next door"

    def __init__(self, *answers: object) -> None:
        self.answers, self.asked, self.request = list(answers), [], None

    def connection(self, request, environment, note):
        self.request, self.environment = request, environment
        return self

    def ask(self, messages):
        self.asked.append(messages)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def _proposed(bench, *answers, **options):
    client = _Client(*answers)
    bench.others = (client,)
    request = bench.request(llm_client="strange", **options)
    return bench.proposer(key="the-key").propose(request), client


def test_a_strangers_client_is_asked_like_the_built_in_one(bench):
    answers = (Answer("no code", "stop", Usage(7, 1)), Answer(fenced(GOOD), "stop", Usage(9, 5)))
    options = {"temperature": "0.5", "max_tokens": "999", "llm_timeout": "7", "base_url": "not://a url"}
    candidate, client = _proposed(bench, *answers, **options)
    assert candidate.allowed
    asked = client.request
    assert (asked.model, asked.temperature, asked.max_tokens, asked.timeout_s) == ("m", 0.5, 999, 7.0)
    assert asked.base_url == "not://a url"  # its own matter
    assert client.environment == {"OPENAI_API_KEY": "the-key"}
    assert [message.role for message in client.asked[1]] == ["system", "user", "assistant", "user"]
    assert bench.notes[0].startswith("llm: sending to a room next door, model m: ")
    first, second = (json.loads(line) for line in bench.log.read_text().splitlines())
    assert first["host"] == second["host"] == "a room next door"
    assert second["answer"]["usage"] == {"prompt_tokens": 9, "completion_tokens": 5, "estimated": False}
    assert "so far 8 of 200000 tokens" in bench.notes[2]


def test_its_exchanges_replay_without_it(bench, tmp_path):
    candidate, _ = _proposed(bench, Answer(fenced(GOOD), "stop", Usage(9, 5)))
    bench.others, bench.directory = (), tmp_path / "again"
    bench.directory.mkdir()
    replay = str(tmp_path / "exchanges.jsonl")
    again = bench.proposer(key="").propose(bench.request(llm_client="strange", replay_llm=replay))
    assert again.edits == candidate.edits


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (RuntimeError("broken"), PluginError, "LLM client 'strange': RuntimeError: broken"),
        ("text alone", PluginError, "Answer was expected, not str"),
        (Answer(7, "stop", Usage(1, 1)), PluginError, "text"),
        (Answer("x" * ((8 << 20) + 1), "stop", Usage(1, 1)), BadDataError, "more than 8388608 characters"),
        (MissingError("it sleeps"), MissingError, "it sleeps"),
    ],
    ids=["raises", "no-answer", "no-text", "endless", "says-why"],
)
def test_what_it_does_wrong_is_named_and_not_recorded(bench, answer, error, says):
    with pytest.raises(error, match=re.escape(says)):
        _proposed(bench, answer)
    assert not bench.log.exists()


def test_lone_surrogates_of_a_reply_can_be_recorded_and_read_back(bench):
    _proposed(bench, *[Answer("no \ud800 code", "stop", Usage(1, 1))] * 3)
    lines = bench.log.read_text().splitlines()
    assert len(lines) == 3
    assert json.loads(lines[0])["answer"]["text"] == "no \ufffd code"


def test_secrets_stop_a_strangers_client_too(bench):
    from rpl_core.errors import UsageError

    client = _Client()
    bench.others = (client,)
    source = SOURCE.replace(b"#define SYNC", b'// api_key = "hunter22hunter22hunter22"\n#define SYNC')
    with pytest.raises(UsageError, match="nothing was sent"):
        bench.proposer().propose(bench.request(source=source, llm_client="strange", prompt="full-source"))
    assert client.asked == []


def test_a_client_that_nobody_offers_is_told_with_those_that_are_there(bench):
    with pytest.raises(MissingError, match="unknown LLM client 'other'; known: openai"):
        bench.proposer().propose(bench.request(llm_client="other"))


def test_an_installed_client_is_chosen_by_flag_and_by_the_settings_file(
    rpl_cli, rpl_site, tmp_path, monkeypatch
):
    """The plugin of the documentation, installed: without its program the session does not begin."""
    monkeypatch.delenv("LOCAL_MODEL", raising=False)
    code = r"<!-- file: rpl_local_model.py -->\n```python\n(.*?)^```$"
    body = re.search(code, PAGE.read_text(), re.DOTALL | re.MULTILINE)[1]
    rpl_site.plugin("local-model", body, header="")
    (tmp_path / "k.hip").write_bytes(SOURCE)
    words = ("llm-optimize", "k.hip", "./app", "--auto-approve", "--model", "m")
    flagged = rpl_cli(*words, "--llm-client", "local", cwd=tmp_path).assert_exit(69)
    assert "LOCAL_MODEL is not set" in flagged.stderr
    (tmp_path / "rpl.toml").write_text('[plugins.llm-unroll]\nllm-client = "local"\n')
    assert "LOCAL_MODEL is not set" in rpl_cli(*words, cwd=tmp_path).assert_exit(69).stderr
    unknown = rpl_cli(*words, "--llm-client", "locl", cwd=tmp_path).assert_exit(69)
    assert "unknown LLM client 'locl'; known: openai, local" in unknown.stderr


def test_nothing_takes_fewer_than_no_tokens():
    """A negative count would make room in the budget."""
    with pytest.raises(ValueError, match="fewer than no tokens"):
        Usage(-5, 1)
    line = json.dumps(
        {
            "version": "1.0",
            "host": "h",
            "parameters": {},
            "subject_sha256": "",
            "messages_sha256": "",
            "messages": [],
            "cost": None,
            "asked_at": "",
            "wall_s": 0.0,
            "answer": {
                "text": "",
                "finish_reason": None,
                "model": None,
                "refusal": None,
                "usage": {"prompt_tokens": 5, "completion_tokens": -1, "estimated": False},
            },
        }
    )
    with pytest.raises(BadDataError, match="place, line 1 is no recorded exchange: nothing takes"):
        parse_exchange(line, "place, line 1")
