"""The tools of an optimization over a program that only says what a test scripted, and drawn ledgers.

Which stage may be called when, what is answered to the session, how it ends; and what a result says of a
session, found again by walking the events that were written.
"""

from __future__ import annotations

import difflib
import json
import random
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server.mcpserver.exceptions import ToolError

from rpl_core.errors import BadDataError
from rpl_mcp import running
from rpl_mcp.optimizing import OptimizeTools, state_of
from rpl_mcp.running import Allowed, Child, Runner, failure
from rpl_mcp.tools import Tools, teller
from rpl_optimize.contracts import EvidencePart, JudgementPart, OptimizeDocument, PolicyPart
from rpl_optimize.ledger.lines import Ledger, LedgerEvent

SCRIPT = """
import json, sys, time
script = json.load(open(sys.argv[1]))
log = open(sys.argv[1] + ".log", "a")
print(json.dumps(sys.argv[2:]), file=log, flush=True)
for note in script["notes"]:
    print(note, file=sys.stderr, flush=True)
for line in script["says"]:
    print(json.dumps(line), flush=True)
    print(sys.stdin.readline().strip(), file=log, flush=True)
sys.stdout.write(script.get("out", ""))
sys.stdout.flush()
time.sleep(script.get("sleeps", 0))
sys.exit(script["code"])
"""
ORIGINAL = b"one\ntwo\nthree\n"


class Context:
    def __init__(self) -> None:
        self.told: list[str] = []

    async def report_progress(self, count: float, total: float | None, text: str) -> None:
        assert (count, total) == (len(self.told) + 1, None)
        self.told.append(text)


class Bench:
    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, *, accept: bool = False) -> None:
        monkeypatch.setattr(running, "_START", SCRIPT)
        self.root, self.script = root, root / "script.json"
        (root / "k.hip").write_bytes(ORIGINAL)
        self.allowed = Allowed.of(root, ["./app 1", "make {source} {output}"], accept=accept)
        self.runner = Runner(root, (str(self.script),), 60.0)
        self.tools = OptimizeTools(self.allowed, self.runner)
        self.context = Context()
        self.session = root / "rpl-runs" / "optimize-k"

    def says(self, *lines: dict[str, Any], code: int = 0, notes: tuple[str, ...] = (), **more: Any) -> None:
        Path(f"{self.script}.log").unlink(missing_ok=True)
        self.script.write_text(json.dumps({"says": lines, "code": code, "notes": notes, **more}))

    @property
    def heard(self) -> list[str]:
        return Path(f"{self.script}.log").read_text().splitlines()[1:]

    def writes(self, folder: Path | None = None) -> Ledger:
        """A session directory with its ledger, its source and its result."""
        folder = folder or self.session
        (folder / "original").mkdir(parents=True)
        (folder / "original" / "k.hip").write_bytes(ORIGINAL)
        document = OptimizeDocument(
            schema_version="1.0", command=("./app", "1"), source="k.hip", source_sha256="0" * 64,
            proposer="ranked", state="running",
        )  # fmt: skip
        (folder / "optimize.json").write_text(document.model_dump_json())
        return Ledger.create(folder / "ledger.jsonl")


@pytest.fixture
def bench(tmp_path, monkeypatch):
    return Bench(tmp_path, monkeypatch)


def propose(ledger: Ledger, folder: Path, number: int, text: bytes | None) -> None:
    source = None if text is None else f"candidates/{number}.hip"
    if source is not None and text is not None:
        (folder / "candidates").mkdir(exist_ok=True)
        (folder / source).write_bytes(text)
    ledger.append(
        LedgerEvent.PROPOSED,
        {"candidate": number, "kernel": "k", "proposer": "p", "summary": f"edit {number}",
         "source_sha256": sha256(text or b"").hexdigest(), "source": source},
    )  # fmt: skip


START = {"source": "k.hip", "command": ["./app", "1"], "build": ["make", "{source}", "{output}"]}
STAGES = ("propose", "build", "measure", "verdict")


@pytest.mark.parametrize("accept", [True, False])
def test_stages_are_begun_in_their_order_and_no_other(tmp_path, monkeypatch, accept):
    bench = Bench(tmp_path, monkeypatch, accept=True)
    lines = [{"waiting_for": "propose"}]
    lines += [{"waiting_for": name, "candidate": 1, "evidence": f"before {name}"} for name in STAGES[1:]]
    lines += [{"waiting_for": "accept", "candidate": 1, "evidence": "a gain"}]
    bench.says(*lines, notes=("one",))

    async def talk():
        tools, context = bench.tools, bench.context
        for name in (*STAGES, "stop"):
            words = () if name == "stop" else (context,)
            with pytest.raises(ToolError, match="no session is held"):
                await getattr(tools, f"optimize_{name}")(*words)
        monkeypatch.setattr(Allowed, "new", lambda self, name: bench.session)
        with bench.writes() as ledger:
            propose(ledger, bench.session, 1, b"one\n2\nthree\n")
        started = await tools.optimize_start(context, **START)
        assert (started.waiting_for, started.session) == ("propose", "rpl-runs/optimize-k")
        told = await tools.allowed_words()
        assert (told.session, told.waiting_for) == ("rpl-runs/optimize-k", "propose")
        with pytest.raises(ToolError, match="is held, and waits for propose"):
            await tools.optimize_start(context, **START)
        for number, name in enumerate(STAGES):
            for other in set(STAGES) - {name}:
                with pytest.raises(ToolError, match=f"waits for {name}, not for {other}.*optimize_{name}"):
                    await getattr(tools, f"optimize_{other}")(context)
            found = await getattr(tools, f"optimize_{name}")(context)
            following = (*STAGES, "accept")[number + 1]
            assert found.waiting_for == following
            state = await tools.optimize_state("rpl-runs/optimize-k")
            assert (state.waiting_for, state.question) == (following, lines[number + 1]["evidence"])
        assert found.question == "a gain"
        last = await tools.optimize_accept(context, accept)
        assert last.waiting_for is None
        assert (await tools.allowed_words()).session is None
        assert bench.runner._started == set()
        with pytest.raises(ToolError, match="no session is held"):
            await tools.optimize_stop()

    anyio.run(talk)
    assert bench.heard == ["go"] * 4 + ["go" if accept else "no"]


def test_a_question_stays_open_where_nothing_may_be_written(bench):
    async def talk():
        with pytest.raises(ToolError, match=r"nothing may be written.*--allow-accept"):
            await bench.tools.optimize_accept(bench.context, True)
        with pytest.raises(ToolError, match="no session is held"):
            await bench.tools.optimize_accept(bench.context, False)

    anyio.run(talk)


@pytest.mark.parametrize("code", [0, 1, 64, 65, 70, 75, 76, 124, 130])
@pytest.mark.parametrize("written", [True, False])
def test_a_session_that_ends_by_itself(bench, monkeypatch, code, written):
    """Ended, found nothing, left open or interrupted: the result is in the document. Others are failures."""
    bench.says(code=code, notes=("a", "b", "c", "it is so"))
    monkeypatch.setattr(Allowed, "new", lambda self, name: bench.session)
    if written:
        bench.writes().close()

    async def talk():
        if written and code in (0, 1, 75, 130):
            found = await bench.tools.optimize_start(bench.context, **START)
            assert found.waiting_for is None
            assert found.notes == ("a", "b", "c", "it is so")
        else:
            with pytest.raises(ToolError, match=f"exit code {code} and said 'b'; 'c'; 'it is so'"):
                await bench.tools.optimize_start(bench.context, **START)
        assert bench.tools.held is None
        assert bench.runner._started == set()

    anyio.run(talk)


def _drawn(draw: random.Random, ledger: Ledger, folder: Path) -> list[tuple[str, Any]]:
    """Events of some candidates, as far as each came."""
    events: list[tuple[str, Any]] = []

    def add(event: LedgerEvent, **data: Any) -> None:
        ledger.append(event, data)
        events.append((event.name, data))

    for number in range(1, draw.randint(1, 5)):
        text = draw.choice((None, b"one\n%d\nthree\n" % number, ORIGINAL + b"%d\n" % number))
        if draw.random() < 0.7:
            add(LedgerEvent.BASELINE_PROFILED, number=number, directory="b", source_sha256="0" * 64)
        if draw.random() < 0.5:
            add(LedgerEvent.TARGET_CHOSEN, kernel=f"k{number}", reason="most of the path")
        propose(ledger, folder, number, text)
        events.append(("PROPOSED", {"candidate": number, "text": text}))
        guards = [{"guard": f"g{number}", "passed": True, "reason": ""}]
        add(LedgerEvent.SOURCE_GUARDED, candidate=number, guards=guards)
        if draw.random() < 0.6:
            build = {"commands": [["cc", str(number)]], "reproducible": True}
            add(LedgerEvent.BUILT, candidate=number, build=build)
            add(LedgerEvent.BINARY_GUARDED, candidate=number, guards=guards)
        if draw.random() < 0.7:
            verdict = draw.choice(("accepted", "rejected"))
            judgement = JudgementPart(verdict=verdict, stage="measurement", reason=f"r{number}")
            add(
                LedgerEvent.JUDGED, candidate=number, evidence=EvidencePart(), policy=PolicyPart(),
                judgement=judgement,
            )  # fmt: skip
            if verdict == "accepted" and text is not None:
                add(LedgerEvent.WRITTEN, candidate=number, path="k_opt.hip", sha256="1" * 64)
    if draw.random() < 0.5:
        add(LedgerEvent.FINISHED, termination_reason="no_improvement")
    return events


@pytest.mark.parametrize("seed", range(25))
def test_a_result_says_what_the_ledger_has(bench, seed):
    draw = random.Random(seed)
    with bench.writes() as ledger:
        events = _drawn(draw, ledger, bench.session)
    numbers = [data["candidate"] for name, data in events if name == "PROPOSED"]
    for asked in (None, *numbers, 99):
        waiting = draw.choice((None, "build"))
        told = {} if waiting is None else {"waiting_for": waiting, "evidence": "so"}
        found = state_of(bench.allowed, bench.session, told, iter(("a note",)), asked)
        number = max(numbers, default=None) if asked is None else asked

        def last(name: str, number: int | None = None) -> Any:
            of = [d for n, d in events if n == name and (number is None or d["candidate"] == number)]
            return of[-1] if of else None

        known = number in numbers
        assert (found.candidate, found.session, found.notes) == (number, "rpl-runs/optimize-k", ("a note",))
        assert (found.waiting_for, found.question) == (waiting, told.get("evidence"))
        finished = last("FINISHED") if waiting is None else None
        assert (found.finished is None) == (finished is None)
        baseline, target = last("BASELINE_PROFILED"), last("TARGET_CHOSEN")
        assert (found.baseline and found.baseline.number) == (baseline and baseline["number"])
        assert (found.target and found.target.kernel) == (target and target["kernel"])
        assert (found.proposed and found.proposed.candidate) == (number if known else None)
        built = last("BUILT", number) if known else None
        assert (found.build and list(map(list, found.build.commands))) == (
            built and built["build"]["commands"]
        )
        assert [one.guard for one in found.source_guards] == ([f"g{number}"] if known else [])
        assert [one.guard for one in found.binary_guards] == ([f"g{number}"] if built else [])
        judged = last("JUDGED", number) if number is not None else None
        assert found.judgement == (judged and judged["judgement"])
        wrote = last("WRITTEN")
        mine = wrote if wrote is not None and wrote["candidate"] == number else None
        assert (found.written and found.written.candidate) == (mine and mine["candidate"])
        assert found.optimize.proposer == "ranked"
        assert found.diff == _difference(events, number)


def _difference(events: list[tuple[str, Any]], number: int | None) -> str | None:
    """From the last version that was written before a candidate was proposed to that candidate."""
    texts = {data["candidate"]: data["text"] for name, data in events if name == "PROPOSED"}
    if texts.get(number) is None:
        return None
    place = next(
        i for i, (name, data) in enumerate(events) if name == "PROPOSED" and data["candidate"] == number
    )
    before = ORIGINAL
    for name, data in events[:place]:
        if name == "WRITTEN":
            before = texts[data["candidate"]]
    lines = [text.decode().splitlines(keepends=True) for text in (before, texts[number])]
    return "".join(difflib.unified_diff(*lines, f"a/{number}.hip", f"b/{number}.hip"))


@pytest.mark.parametrize("names", [(), ("k.hip", "other.hip"), None])
def test_a_session_keeps_one_copy_of_its_source(bench, names):
    bench.writes().close()
    folder = bench.session / "original"
    (folder / "k.hip").unlink()
    for name in names or ():
        (folder / name).write_bytes(ORIGINAL)
    if names is None:
        folder.rmdir()
    with pytest.raises(BadDataError, match="optimize-k keeps no copy of its source"):
        state_of(bench.allowed, bench.session, {})


def test_no_link_leads_out_of_a_session(bench):
    bench.writes().close()
    (bench.session / "optimize.json").unlink()
    (bench.session / "optimize.json").symlink_to(bench.root / "k.hip")
    with pytest.raises(BadDataError, match="goes through a link"):
        state_of(bench.allowed, bench.session, {})


@pytest.mark.parametrize("notes", [(), ("a",), ("a", "b", "c", "d")])
def test_a_failure_quotes_what_was_said_last(notes):
    said = "; ".join(f"'{note}'" for note in notes[-3:]) or "nothing"
    answer = running.Answer(7, b"", notes)
    assert str(failure("profile", answer)) == f"rpl profile ended with exit code 7 and said {said}"


def test_what_a_command_prints_is_bounded(bench, monkeypatch):
    """So much and no more of stdout; of stderr the last lines, each cut."""
    monkeypatch.setattr(running, "_MOST_BYTES", 1000)
    tools = Tools(bench.allowed, bench.runner)

    async def run() -> Any:
        return await tools._run(bench.context, ["analyze"], (0,))

    long = "x" * 500
    bench.says(out="y" * 1000, notes=(*map(str, range(40)), "", "  ", long))
    found = anyio.run(run)
    assert (found.exit_code, found.stdout) == (0, b"y" * 1000)
    assert len(found.notes) == 30
    assert found.notes[:2] == ("11", "12")
    assert 390 <= len(found.notes[-1]) <= 400
    assert bench.context.told
    assert set(bench.context.told) <= {*map(str, range(40)), found.notes[-1]}
    for script in ({"out": "y" * 1001}, {"out": "y" * 1001, "sleeps": 60}, {"out": "y" * 999 + "\n" * 2}):
        bench.says(**script)
        with pytest.raises(BadDataError, match="so it is not read"):
            anyio.run(run)
        assert bench.runner._started == set()

    async def line() -> None:
        child = await bench.runner.start(["x"])
        try:
            await child.line(teller(bench.context))
        finally:
            await bench.runner.end(child)

    with pytest.raises(BadDataError, match="so it is not read"):
        anyio.run(line)


def test_a_command_that_takes_too_long_is_ended(bench):
    bench.says(sleeps=60)
    bench.runner.time_limit_s = 1.0
    tools = Tools(bench.allowed, bench.runner)
    with pytest.raises(Exception, match="rpl analyze did not end within 1 s and was stopped"):
        anyio.run(tools._run, bench.context, ["analyze"])
    assert bench.runner._started == set()


def test_the_lines_of_a_child_come_one_by_one(bench):
    bench.says({"a": 1}, {"b": 2}, out="the end")

    async def talk() -> list[bytes | None]:
        async def tell(_: str) -> None: ...

        child: Child = await bench.runner.start(["x"])
        found = []
        for _ in range(2):
            found.append(await child.line(tell))
            await child.say("on")
        found.append(await child.line(tell))
        await bench.runner.end_all()
        return found

    assert anyio.run(talk) == [b'{"a": 1}', b'{"b": 2}', None]
    assert bench.heard == ["on", "on"]
