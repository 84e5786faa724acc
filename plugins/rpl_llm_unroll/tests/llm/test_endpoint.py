"""Servers that fail, are slow, send too much or something else: bounded tries, then one clear error."""

from __future__ import annotations

import resource
import time

import pytest

from rpl_core.errors import BadDataError, MissingError, RplError, UsageError
from rpl_llm_unroll.endpoint import OpenAiClient
from rpl_llm_unroll.interfaces.client import ModelRequest
from rpl_testkit.llm_server import LlmServer, Scripted

from .conftest import KEY
from .sources import GOOD, fenced

REPLY = Scripted(fenced(GOOD))


def _error(status: int, text: str = "no", **headers: str) -> Scripted:
    body = f'{{"error": {{"message": "{text}", "type": "x", "code": "x"}}}}'.encode()
    return Scripted(status=status, body=body, headers=headers)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_a_failure_that_may_pass_is_tried_again(bench, serve, status):
    server = serve(_error(status), _error(status), REPLY)
    assert bench.proposer().propose(bench.request()).allowed
    assert len(server.requests) == 3
    assert bench.pauses == [1.0, 2.0]
    assert any(str(status) in note for note in bench.notes)


def test_the_tries_end(bench, serve):
    server = serve(_error(503))
    with pytest.raises(MissingError, match=r"no answer in 4 tries: .* status 503"):
        bench.proposer().propose(bench.request())
    assert len(server.requests) == 4
    assert not bench.log.exists()


@pytest.mark.parametrize(("asked", "pause"), [("7", 7.0), ("99999", 30.0), ("soon", 1.0), ("-1", 1.0)])
def test_the_servers_wish_to_wait_is_granted_within_reason(bench, serve, asked, pause):
    serve(_error(429, **{"Retry-After": asked}), REPLY)
    bench.proposer().propose(bench.request())
    assert bench.pauses == [pause]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (_error(400, "unknown parameter"), "unknown parameter"),
        (_error(404, "no such model"), "no such model"),
        (_error(422), "status 422"),
        (_error(401, f"wrong key {KEY}"), "refuses the key"),
        (_error(403), "refuses the key"),
        (_error(429, "insufficient_quota"), "insufficient_quota"),
        (Scripted(status=400, body=b"\x1b[31m" + KEY.encode()), "***"),
        (Scripted(status=307, body=b"", headers={"Location": "http://127.0.0.1:9/v1"}), "redirect"),
    ],
)
def test_what_will_not_pass_is_not_tried_again(bench, serve, answer, says):
    server = serve(answer)
    with pytest.raises(MissingError) as caught:
        bench.proposer().propose(bench.request())
    line = caught.value.one_line()
    assert says in line
    assert KEY not in line
    assert len(server.requests) == 1
    assert bench.pauses == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>hello</html>",
        b"[]",
        b"null",
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": "text"}]}',
        b"[" * 100_000,
        b'{"choices": ' + b"9" * 6000 + b"}",
        b"\xff\xfe",
    ],
)
def test_an_answer_that_is_no_chat_completion_is_bad_data(bench, serve, body):
    serve(Scripted(body=body))
    with pytest.raises(BadDataError, match="no chat completion"):
        bench.proposer().propose(bench.request())


@pytest.mark.parametrize("answer", [Scripted("x", delay_s=20), Scripted("x" * 1000, drip_s=0.05)])
def test_a_slow_server_runs_into_the_time_limit(bench, serve, answer):
    serve(answer)
    begin = time.monotonic()
    with pytest.raises(MissingError, match=r"did not answer within 0\.2 s"):
        bench.proposer().propose(bench.request(llm_timeout="0.2"))
    assert time.monotonic() - begin < 10


def test_a_huge_answer_is_not_kept_in_memory(bench, serve):
    serve(Scripted(body=b"x" * (1 << 20), repeat=400))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BadDataError, match="larger than 8 MiB"):
        bench.proposer().propose(bench.request())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 << 10  # KiB


def test_a_huge_error_is_not_kept_in_memory(bench, serve):
    serve(Scripted(body=b"x" * (1 << 20), repeat=400, status=400))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(MissingError, match="status 400"):
        bench.proposer().propose(bench.request())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 << 10  # KiB


def test_an_answer_that_breaks_off_is_tried_again(bench, serve):
    server = serve(Scripted(fenced(GOOD), cut=40), REPLY)
    assert bench.proposer().propose(bench.request()).allowed
    assert len(server.requests) == 2


def test_no_server_at_all(bench):
    with LlmServer([REPLY]) as server:
        bench.server = server
    with pytest.raises(MissingError, match=r"no connection to 127\.0\.0\.1"):
        bench.proposer().propose(bench.request())


def test_the_limit_is_renamed_for_models_that_want_it_so(bench, serve):
    server = serve(_error(400, "use max_completion_tokens instead"), REPLY)
    assert bench.proposer().propose(bench.request(max_tokens="900")).allowed
    first, second = server.requests
    assert first["max_tokens"] == second["max_completion_tokens"] == 900
    assert "max_tokens" not in second


def test_options_reach_the_endpoint(bench, serve):
    server = serve(REPLY)
    bench.proposer().propose(bench.request(temperature="0.5", seed="-3", max_tokens="10"))
    sent = server.requests[0]
    assert (sent["temperature"], sent["seed"], sent["max_tokens"], sent["model"]) == (0.5, -3, 10, "m")
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_unset_options_are_left_to_the_endpoint(bench, serve):
    server = serve(REPLY)
    bench.proposer().propose(bench.request())
    assert set(server.requests[0]) == {"messages", "model", "max_tokens"}


def test_without_a_key_only_other_endpoints_are_asked(bench, serve):
    serve(REPLY)
    assert bench.proposer(key="").propose(bench.request()).allowed
    bench.server = None
    with pytest.raises(MissingError, match="OPENAI_API_KEY is not set"):
        bench.proposer(key="").propose(bench.request(prompt="compact"))


@pytest.mark.parametrize(
    "options",
    [
        {"model": ""},
        {"base_url": "ftp://x"},
        {"base_url": "nonsense"},
        {"base_url": "http://user:hunter22@host/v1"},
        {"base_url": "http://host/v1?key=hunter22"},
        {"base_url": "http://host:port/v1"},
        {"temperature": "hot"},
        {"temperature": "nan"},
        {"temperature": "3"},
        {"seed": "1.5"},
        {"max_tokens": "0"},
        {"token_budget": "-1"},
        {"money_budget": "1"},
        {"money_budget": "1", "price_in": "1"},
        {"llm_timeout": "0"},
        {"prompt": "long"},
        {"allow_secret_lines": "x"},
        {"replay_other_figures": "maybe"},
        {"surprise": "1"},
    ],
)
def test_impossible_options_are_usage_errors(bench, options):
    with pytest.raises(UsageError) as caught:
        bench.proposer().propose(bench.request(**options))
    assert "hunter22" not in caught.value.one_line()


def test_the_endpoint_may_come_from_the_environment():
    def destination(base_url, environment):
        request = ModelRequest(model="m", base_url=base_url)
        return OpenAiClient().connection(request, {**environment, "OPENAI_API_KEY": "x"}, print).destination

    environment = {"OPENAI_BASE_URL": "http://elsewhere:1/v1/"}
    assert destination(None, environment) == "elsewhere:1"
    assert destination("http://here/v1", environment) == "here"
    assert destination(None, {}) == "api.openai.com"
    with pytest.raises(RplError, match="OPENAI_BASE_URL"):
        destination(None, {"OPENAI_BASE_URL": "here"})
