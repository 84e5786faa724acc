"""``--step-by-step``: another program walks through a session, and leaves it where it can be resumed."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from rpl_core.cli.output import Output
from rpl_optimize.cli.optimize_command import StepByStep

START = "import sys; from rpl_core.cli import main; sys.exit(main())"
INTERRUPTED = 130


def walked(loop, words, answers):
    """What the session tells when it gets these answers and then the end of the input, and its exit code."""
    lines = "".join(f"{answer}\n" for answer in answers)
    command = [sys.executable, "-c", START, *words]
    done = subprocess.run(
        command, cwd=loop.bench.folder, input=lines, capture_output=True, text=True, check=False
    )
    return [json.loads(line) for line in done.stdout.splitlines()], done


@pytest.mark.clang
@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_session_is_walked_through_left_open_and_resumed(killable_loop) -> None:
    loop = killable_loop
    loop.script("does not build", "faster")
    words = [word for word in loop.words(*loop.CHECKED, "--max-iters", "2") if word != "--auto-approve"]
    words[words.index("optimize") + 1 : words.index("optimize") + 1] = ["--step-by-step"]
    told, done = walked(loop, words, ["go", "go", "go", "go"])
    assert done.returncode == INTERRUPTED, done.stderr
    # The first candidate does not get past its guards, so there is nothing to build or to measure.
    waited = [(one["waiting_for"], one["candidate"]) for one in told]
    assert waited == [("propose", 1), ("verdict", 1), ("propose", 2), ("build", 2), ("measure", 2)]
    assert loop.events("judged")[0]["candidate"] == 1
    assert [event["candidate"] for event in loop.events("built")] == [2]
    assert not loop.events("equivalence_checked")

    resume = ["-p", "rpl_testkit.scripted_proposer", "optimize", "--resume", str(loop.root), "--step-by-step"]
    told, done = walked(loop, resume, ["go", "go", "go"])
    assert done.returncode == INTERRUPTED, done.stderr
    assert [one["waiting_for"] for one in told] == ["build", "measure", "verdict", "accept"]
    assert "+#pragma unroll 4" in told[-1]["diff"]
    assert loop.events("judged")[-1]["judgement"]["verdict"] == "accepted"
    assert not list(loop.source.parent.glob("smooth_opt*"))

    runs = loop.bench.process_runs()
    told, done = walked(loop, resume, ["go", "go", "go", "go"])
    assert [one["waiting_for"] for one in told] == ["build", "measure", "verdict", "accept", None]
    assert done.returncode == 0, done.stderr
    assert told[-1]["optimize"]["verdict"] == "accepted"
    assert told[-1]["optimize"] == loop.document()
    assert loop.source.with_name("smooth_opt.hip").is_file()
    # Built and checked again, profiled before and after, and not measured again.
    assert loop.bench.process_runs() - runs < 20
    loop.verify()


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """``steps(answer)``: a session that gets this line."""

    def answered(line):
        monkeypatch.setattr("sys.stdin", io.StringIO(line))
        return StepByStep(Output(), tmp_path)

    return answered


@pytest.mark.parametrize("line", ["", "\n", "no\n", "stop\n", "x" * 5000 + "\ngo\n"])
def test_a_stage_begins_by_one_word_only(steps, capsys, line) -> None:
    steps("go\n").hold("build", 3)
    told = json.loads(capsys.readouterr().out)
    assert (told["waiting_for"], told["candidate"]) == ("build", 3)
    with pytest.raises(KeyboardInterrupt):
        steps(line).hold("build", 3)


@pytest.mark.parametrize(("line", "accepted"), [("go\n", True), ("no\n", False)])
def test_an_acceptance_is_answered(steps, capsys, line, accepted) -> None:
    assert steps(line).approve("-a\n+b\x1b\u202e\n", "why") is accepted
    (told,) = capsys.readouterr().out.splitlines()  # one line, whatever the source holds
    assert "\u202e" not in told
    assert json.loads(told)["diff"] == "-a\n+b\x1b\u202e\n"


def test_an_acceptance_without_an_answer_stays_open(steps) -> None:
    with pytest.raises(KeyboardInterrupt):
        steps("").approve("", "")


@pytest.mark.parametrize("other", ["--auto-approve", "--json"])
def test_nothing_else_answers_or_prints(rpl_cli, other) -> None:
    ran = rpl_cli("optimize", "--step-by-step", other, "./app")
    assert ran.exit_code == 64
    assert f"so {other} can't go with it" in ran.stderr
