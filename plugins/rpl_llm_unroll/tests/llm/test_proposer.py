"""The proposer ``llm``: repair turns, budgets, records, replay and what the user is told."""

from __future__ import annotations

import json

import attrs
import pytest

from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_llm_unroll.endpoint import parse_answer
from rpl_llm_unroll.interfaces.client import Answer, Connection, LlmClient, Message, Usage
from rpl_optimize.interfaces.proposer import Attempt
from rpl_optimize.transform import apply_edits
from rpl_testkit.contracts.checks import assert_proposer
from rpl_testkit.llm_server import Scripted

from .conftest import KEY
from .sources import GOOD, SOURCE, fenced
from .test_replies import BAD_REPLIES

BETTER = GOOD.replace("unroll 4", "unroll 8")


def _changed(candidate, source: bytes = SOURCE) -> bytes:
    return apply_edits(source, candidate.edits)


def test_it_keeps_the_contract_of_proposers(bench, serve):
    serve(fenced(GOOD))
    assert_proposer(bench.proposer(), bench.request(), deterministic=False)


def test_a_good_reply_becomes_a_candidate(bench, serve):
    serve(fenced(GOOD))
    candidate = bench.proposer().propose(bench.request())
    assert candidate.allowed
    assert (candidate.kernel, candidate.line) == ("blend", 9)
    assert b"#pragma unroll 4" in _changed(candidate)
    assert candidate.id.removeprefix("blend-llm-") in candidate.summary


def test_broken_replies_are_repaired_within_the_bound(bench, serve):
    server = serve("no code", fenced("int x;"), fenced(GOOD))
    assert bench.proposer().propose(bench.request()).allowed
    last = server.requests[2]["messages"]
    assert [m["role"] for m in last] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "no fenced code block" in last[3]["content"]
    assert "does not define the kernel" in last[5]["content"]


def test_after_two_repairs_the_proposal_comes_to_nothing(bench, serve):
    server = serve("no code")
    proposer = bench.proposer()
    candidate = proposer.propose(bench.request())
    assert (candidate.edits, candidate.allowed) == ((), False)
    assert candidate.guards[0].guard == "reply-contract"
    assert len(server.requests) == 3
    assert proposer.repair(bench.request(), candidate, "nothing to build") is None
    again = proposer.propose(bench.request(attempts=(Attempt(candidate.summary, "rejected", "no reply"),)))
    assert again is not None
    assert again.summary != candidate.summary


def test_the_user_hears_why_a_reply_is_refused_and_what_was_spent(bench, serve):
    serve("no code")
    bench.proposer().propose(bench.request(price_in="1000", price_out="2000", money_budget="900"))
    refused = [note for note in bench.notes if "the reply is refused" in note]
    assert [note.rpartition("; ")[2] for note in refused] == [
        "repair 1 of 2",
        "repair 2 of 2",
        "no repair is left",
    ]
    assert all("the reply has no fenced code block" in note for note in refused)
    sent = [note.rpartition("; ")[2] for note in bench.notes if "sending" in note]
    assert sent == [
        "so far 0 of 200000 tokens, money 0.0000 of 900",
        "so far 150 of 200000 tokens, money 0.2000 of 900",
        "so far 300 of 200000 tokens, money 0.4000 of 900",
    ]


def test_repairs_of_reply_and_build_share_one_bound(bench, serve):
    server = serve("no code", fenced(GOOD), fenced(BETTER))
    proposer, request = bench.proposer(), bench.request()
    first = proposer.propose(request)
    second = proposer.repair(request, first, "/home/someone/scratch/k.hip:13: error: no member `x`\n```\nhi")
    assert b"unroll 8" in _changed(second)
    told = server.requests[2]["messages"][-1]["content"]
    assert "k.hip:13: error: no member 'x'" in told
    assert "/home/someone" not in told
    assert proposer.repair(request, second, "error again") is None
    assert len(server.requests) == 3


def test_a_stranger_is_not_repaired(bench, serve):
    serve(fenced(GOOD))
    candidate = bench.proposer().propose(bench.request())
    assert bench.proposer().repair(bench.request(), candidate, "error") is None


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Scripted(fenced(GOOD), finish_reason="length"), "cut off"),
        (Scripted(fenced(GOOD), finish_reason="content_filter"), "content filter"),
        (Scripted(None, refusal="I can't."), "refused to answer: I can't."),
        (Scripted(None), "empty"),
        (Scripted("\ud800\n" + fenced(GOOD)[:-5]), "not closed"),
        (Scripted("```" * 200_000), "longer than 512 KiB"),
    ],
)
def test_other_answers_are_repair_turns_too(bench, serve, answer, reason):
    server = serve(answer, fenced(GOOD))
    assert bench.proposer().propose(bench.request()).allowed
    last = server.requests[1]["messages"]
    assert reason in last[-1]["content"]
    assert len(json.dumps(last)) < 400_000


def test_parts_of_a_content_list_are_joined():
    body = {"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"type": "x"}, 3]}}]}
    answer = parse_answer(json.dumps(body).encode(), (), "host")
    assert (answer.text, answer.usage.estimated) == ("a", True)


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": -1, "completion_tokens": 1}, {"prompt_tokens": "9"}]
)
def test_a_usage_that_can_not_be_is_estimated(usage):
    body = {"choices": [{"message": {"content": "abc" * 30}}], "usage": usage}
    messages = (Message("user", "xyz" * 10),)
    assert parse_answer(json.dumps(body).encode(), messages, "host").usage == Usage(10, 30, estimated=True)


class _Repeating(LlmClient, Connection):
    """A client that says the same whatever is asked."""

    name, summary, destination = "repeating", "Says the same.", "nobody"

    def __init__(self, text: str) -> None:
        self.text = text

    def connection(self, request, environment, note):
        return self

    def ask(self, messages):
        return Answer(self.text, "stop", Usage(1, 1))


@pytest.mark.parametrize("name", BAD_REPLIES)
def test_no_bad_reply_leaves_anything_to_compile(bench, name):
    bench.others = (_Repeating(BAD_REPLIES[name][0]),)
    source = SOURCE.replace(b"#define SYNC", b'#define HALT asm("x")\n#define SYNC')
    candidate = bench.proposer(key="").propose(bench.request(source=source, llm_client="repeating"))
    assert (candidate.edits, candidate.allowed) == ((), False)
    assert len(bench.log.read_text().splitlines()) == 3  # recorded before it was judged


def test_a_kernel_that_was_tried_is_asked_for_anew(bench, serve):
    server = serve(fenced(GOOD), fenced(GOOD + "// other words"), fenced(BETTER))
    proposer = bench.proposer()
    first = proposer.propose(bench.request())
    attempts = (Attempt(first.summary, "rejected", "3 % slower at /home/someone/x/y"),)
    second = proposer.propose(bench.request(attempts=attempts))
    assert b"unroll 8" in _changed(second)
    asked = server.requests[1]["messages"][1]["content"]
    assert first.summary in asked
    assert "3 % slower at y" in asked
    assert "tried before" in server.requests[2]["messages"][-1]["content"]


def test_the_token_budget_ends_the_proposals(bench, serve):
    server = serve("no code")
    proposer = bench.proposer()
    options = {"token_budget": "2400", "max_tokens": "1000"}
    candidate = proposer.propose(bench.request(**options))
    (guard,) = candidate.guards
    assert guard.guard == "budget"
    assert "of 2400 tokens are used" in guard.reason
    assert 0 < len(server.requests) < 3
    attempts = (Attempt(candidate.summary, "rejected", guard.reason),)
    assert proposer.propose(bench.request(attempts=attempts, **options)) is None


def test_the_money_budget_ends_the_proposals(bench, serve):
    server = serve(Scripted("no code", usage={"prompt_tokens": 1000, "completion_tokens": 500}))
    options = {"money_budget": "0.03", "price_in": "5", "price_out": "10", "max_tokens": "1000"}
    candidate = bench.proposer().propose(bench.request(**options))
    assert candidate.guards[0].guard == "budget"
    assert "of 0.03 are spent" in candidate.guards[0].reason
    costs = [json.loads(line)["cost"] for line in bench.log.read_text().splitlines()]
    assert costs == [0.01] * len(server.requests)


def test_the_user_is_told_before_anything_is_sent(bench, serve):
    server = serve(fenced(GOOD))
    bench.proposer().propose(bench.request())
    host = server.base_url.split("/")[2]
    size = sum(len(m["content"].encode()) for m in server.requests[0]["messages"])
    assert bench.notes[0].startswith(f"llm: sending to {host}, model m: {size} bytes")
    assert "the kernel blend of k.hip" in bench.notes[0]
    assert "/home/someone" not in json.dumps(server.requests)


def test_nothing_is_sent_when_the_note_fails(bench, serve):
    server = serve(fenced(GOOD))

    def refuse(_line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.proposer().propose(attrs.evolve(bench.request(), note=refuse))
    assert server.requests == []


SECRET_LINE = b'// api_key = "9f8a7b6c5d4e3f2a1b0c9f8a7b6c5d4e"\n  __shared__'


def test_a_secret_in_what_would_be_sent_stops_it(bench, serve):
    server = serve(fenced(GOOD))
    source = SOURCE.replace(b"__shared__", SECRET_LINE, 1)
    with pytest.raises(UsageError) as caught:
        bench.proposer().propose(bench.request(source=source))
    line = caught.value.one_line()
    assert "k.hip, line 10 looks like a value assigned to a key" in line
    assert "9f8a7b6c" not in line
    assert server.requests == []
    assert not bench.log.exists()


def test_a_line_can_be_declared_harmless(bench, serve):
    serve("no code")
    source = SOURCE.replace(b"__shared__", SECRET_LINE, 1)
    assert bench.proposer().propose(bench.request(source=source, allow_secret_lines="3, 10")) is not None
    marked = source.replace(b'4e"\n', b'4e"  pragma: allowlist secret\n')
    assert bench.proposer().propose(bench.request(source=marked)) is not None


def test_what_is_not_sent_is_not_looked_at(bench, serve):
    serve(fenced(GOOD))
    source = SOURCE + b'\nconst char* password = "hunter2hunter2";\n'
    assert bench.proposer().propose(bench.request(source=source)).allowed
    with pytest.raises(UsageError, match="line 22"):
        bench.proposer().propose(bench.request(source=source, prompt="full-source"))


def test_the_key_is_neither_recorded_nor_shown(bench, serve):
    serve("no code", fenced(GOOD))
    bench.proposer().propose(bench.request())
    assert KEY not in bench.log.read_text() + "".join(bench.notes)
    assert "authorization" not in bench.log.read_text().lower()


def test_an_exchange_is_recorded_with_everything_that_matters(bench, serve):
    server = serve(fenced(GOOD))
    bench.proposer().propose(bench.request(temperature="0.1"))
    (line,) = bench.log.read_text().splitlines()
    record = json.loads(line)
    assert record["messages"] == server.requests[0]["messages"]
    assert record["parameters"] == {"model": "m", "temperature": 0.1, "max_tokens": 16384}
    assert record["answer"]["text"] == fenced(GOOD)
    assert record["answer"]["usage"] == {"prompt_tokens": 100, "completion_tokens": 50, "estimated": False}
    assert (record["answer"]["finish_reason"], record["answer"]["model"]) == ("stop", "scripted-model")


def test_a_replay_gives_the_same_bytes_without_a_network(bench, serve, tmp_path):
    serve("no code", fenced(GOOD), fenced(BETTER))
    proposer, request = bench.proposer(), bench.request()
    first = proposer.propose(request)
    second = proposer.repair(request, first, "does not build")
    recorded = tmp_path / "recorded.jsonl"
    recorded.write_bytes(bench.log.read_bytes())
    bench.log.unlink()
    bench.server, bench.notes = None, []
    replaying = bench.proposer(key="")
    request = bench.request(replay_llm=str(recorded))
    again = replaying.propose(request)
    assert again == first
    assert replaying.repair(request, again, "does not build") == second
    assert bench.log.read_bytes() == recorded.read_bytes()
    assert not any("sending" in note for note in bench.notes)


def _recorded(bench, serve, tmp_path, *replies: str):
    serve(*replies)
    bench.proposer().propose(bench.request())
    recorded = tmp_path / "recorded.jsonl"
    bench.log.rename(recorded)
    bench.server = None
    return recorded


def test_a_replay_of_another_question_is_bad_data(bench, serve, tmp_path):
    recorded = _recorded(bench, serve, tmp_path, fenced(GOOD))
    for changed in (
        {"source": SOURCE.replace(b"TILE 64", b"TILE 32")},
        {"prompt": "compact"},
        {"attempts": (Attempt("x", "rejected", "y"),)},
    ):
        with pytest.raises(BadDataError, match="recorded for another question"):
            bench.proposer().propose(bench.request(replay_llm=str(recorded), **changed))


def test_a_replay_with_other_figures_is_taken_on_request_only(bench, serve, tmp_path):
    recorded = _recorded(bench, serve, tmp_path, fenced(GOOD))
    documents = {"profile": _profile(runtime_ms=2.0)}
    request = bench.request(documents=documents, replay_llm=str(recorded))
    with pytest.raises(BadDataError, match="other figures"):
        bench.proposer().propose(request)
    request = bench.request(documents=documents, replay_llm=str(recorded), replay_other_figures="true")
    assert bench.proposer().propose(request).allowed


def _profile(runtime_ms: float) -> dict:
    parts = {name: {} for name in ("kernel", "gpu", "stability", "resources", "occupancy")}
    return {"schema_version": "1.0", "runtime_ms": runtime_ms, "roofline": None, **parts}


def test_a_replay_ends_with_its_file(bench, serve, tmp_path):
    recorded = _recorded(bench, serve, tmp_path, "no code", fenced(GOOD))
    recorded.write_text(recorded.read_text().splitlines()[0] + "\n")
    with pytest.raises(BadDataError, match="holds 1 exchange,"):
        bench.proposer().propose(bench.request(replay_llm=str(recorded)))


@pytest.mark.parametrize("damage", ["text", "hash", "torn", "field", "binary"])
def test_a_damaged_replay_is_bad_data(bench, serve, tmp_path, damage):
    recorded = _recorded(bench, serve, tmp_path, fenced(GOOD))
    content = recorded.read_bytes()
    recorded.write_bytes(
        {
            "text": b"hello\n",
            "hash": content.replace(b"Nothing yet", b"Nothing now"),
            "torn": content[:-20],
            "field": content.replace(b'"host":', b'"guest":'),
            "binary": b"\xff" + content,
        }[damage]
    )
    with pytest.raises(BadDataError, match=r"recorded\.jsonl"):
        bench.proposer().propose(bench.request(replay_llm=str(recorded)))


def test_a_replay_file_that_is_not_there(bench, tmp_path):
    with pytest.raises(MissingError, match="no recorded exchanges"):
        bench.proposer().propose(bench.request(replay_llm=str(tmp_path / "absent")))


def test_a_resumed_session_does_not_ask_again(bench, serve):
    server = serve("no code", fenced(GOOD))
    first = bench.proposer().propose(bench.request())
    with bench.log.open("ab") as log:
        log.write(b'{"version": "1.0", "torn')
    measured_anew = bench.request(documents={"profile": _profile(runtime_ms=2.0)})
    assert bench.proposer().propose(measured_anew) == first
    assert len(server.requests) == 2
    attempts = (Attempt(first.summary, "rejected", "slower"),)
    serve(fenced(BETTER))
    resumed = bench.proposer()
    assert resumed.propose(bench.request(attempts=attempts)).allowed
    assert b'"torn\n{"version"' in bench.log.read_bytes()
    assert bench.proposer().propose(bench.request(attempts=attempts)).allowed  # the torn line is passed over


def test_a_resumed_replay_goes_on_where_it_was(bench, serve, tmp_path):
    recorded = _recorded(bench, serve, tmp_path, "no code", fenced(GOOD))
    whole = recorded.read_bytes()
    bench.log.write_bytes(whole.splitlines(keepends=True)[0])
    assert bench.proposer().propose(bench.request(replay_llm=str(recorded))).allowed
    assert bench.log.read_bytes() == whole


def test_the_budget_of_a_resumed_session_is_not_new(bench, serve):
    server = serve("no code")
    options = {"token_budget": "2400", "max_tokens": "1000"}
    bench.proposer().propose(bench.request(**options))
    asked = len(server.requests)
    candidate = bench.proposer().propose(bench.request(**options))
    assert candidate.guards[0].guard == "budget"
    assert len(server.requests) == asked


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"int main() {}", "no kernel"),
        (b"__global__ void other(int* p) { *p = 1; }", "it defines: other"),
        (SOURCE.replace(b"void other(float* out)", b"void blend(float* out)"), "2 kernels called 'blend'"),
        (SOURCE.replace(b'// "}" in', b'// \xfc "}" in'), "not UTF-8"),
    ],
)
def test_a_kernel_that_can_not_be_asked_about_comes_to_nothing(bench, source, reason):
    request = bench.request(source=source)
    candidate = bench.proposer().propose(request)
    assert reason in candidate.guards[0].reason
    attempts = (Attempt(candidate.summary, "rejected", "x"),)
    assert bench.proposer().propose(attrs.evolve(request, attempts=attempts)) is None


def test_a_resumed_conversation_continues_from_what_was_said_then(bench, serve):
    serve(fenced(GOOD))
    bench.proposer().propose(bench.request())
    recorded = json.loads(bench.log.read_text())["messages"]
    server = serve(fenced(BETTER))
    resumed, measured_anew = bench.proposer(), bench.request(documents={"profile": _profile(runtime_ms=2.0)})
    first = resumed.propose(measured_anew)
    assert server.requests == []
    assert resumed.repair(measured_anew, first, "does not build").allowed
    assert server.requests[0]["messages"][:2] == recorded
