"""Odd command lines of ``rpl optimize``, and sessions that somebody touched, through the real entry point."""

from __future__ import annotations

import json
import os

import click
import pytest

from rpl_core.cli.command_options import takes
from rpl_optimize.cli import optimize_command
from rpl_optimize.cli.optimize_call import Call, recalled
from rpl_optimize.cli.optimize_call import remembered as remembered_of
from rpl_optimize.cli.optimize_options import OptimizeSettings
from rpl_optimize.cli.optimize_request import approval


def refused(outcome, code: int = 64) -> str:
    """One line with the reason, and nothing on stdout."""
    assert outcome.exit_code == code, outcome.stderr
    assert outcome.stdout == ""
    (line,) = [line for line in outcome.stderr.splitlines() if line.startswith("rpl: ")]
    return line


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "x"])
@pytest.mark.parametrize(
    "option", ["--rtol", "--atol", "--min-improvement", "--time-budget", "--build-time-limit", "--time-limit"]
)
def test_numbers_are_numbers(rpl_cli, tmp_path, option: str, value: str) -> None:
    (tmp_path / "k.hip").write_text("")
    outcome = rpl_cli("optimize", "--auto-approve", f"{option}={value}", "k.hip", "./app", cwd=tmp_path)
    assert option in refused(outcome)
    assert [path.name for path in tmp_path.iterdir()] == ["k.hip"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--time-budget", "0", "./app"), "--time-budget"),
        (("--min-improvement", "1", "./app"), "--min-improvement"),
        (("--max-iters", "0", "./app"), "--max-iters"),
        (("--max-iters", "100000000", "./app"), "--max-iters"),
        (("--patience", "0", "./app"), "--patience"),
        (("--link-flags", "'x", "k.hip", "./app"), "--link-flags"),
        ((), "rpl optimize kernel.hip"),
        (("--source", "k.hip"), "rpl optimize kernel.hip"),
        (("k.hip",), "is a source"),
        (("gone.hip", "true"), "no source file at gone.hip"),
        (("k.hip", "./app 'x"), "can't be split"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(rpl_cli, tmp_path, words, said: str) -> None:
    (tmp_path / "k.hip").write_text("")
    assert said in refused(rpl_cli("optimize", "--auto-approve", *words, cwd=tmp_path))


def test_sources_of_triton_are_out_of_reach(rpl_cli, tmp_path) -> None:
    (tmp_path / "kernel.py").write_text("import triton\n\n@triton.jit\ndef add(x):\n    pass\n")
    for words in (("--source", "kernel.py", "python3 kernel.py"), ("kernel.py", "./app")):
        line = refused(rpl_cli("optimize", "--auto-approve", *words, cwd=tmp_path))
        assert "kernel.py is a source of Triton, which is out of reach" in line


def test_kernels_that_no_file_holds_are_out_of_reach(rpl_cli, tmp_path, rpl_standin_rocprofv3) -> None:
    """One recorded run tells: whoever starts the program, hipRTC compiles them."""
    (tmp_path / "k.hip").write_text("__global__ void nbody_forces();")
    outcome = rpl_cli("optimize", "--auto-approve", "k.hip", "--", "sh", "-c", "exit 0", cwd=tmp_path)
    assert "it is run once to see what sh starts" in outcome.stderr
    line = refused(outcome, 69)
    assert "no file holds nbody_forces" in line
    assert "hipRTC" in line
    assert "no installed plugin gives a running program other code objects" in line
    assert "hipModuleLoad" in line


def test_nobody_to_ask(rpl_cli, tmp_path) -> None:
    assert "--auto-approve" in refused(rpl_cli("optimize", "k.hip", "./app", cwd=tmp_path))


def test_a_place_that_may_not_be_written_is_known_before_anything_is_measured(
    rpl_cli, tmp_path, monkeypatch
) -> None:
    (tmp_path / "k.hip").write_text("__global__ void k() {}")
    monkeypatch.setattr(optimize_command.os, "access", lambda *_: False)
    line = refused(rpl_cli("optimize", "--auto-approve", "k.hip", "./app", cwd=tmp_path))
    assert "beside the source" in line


class Asked:
    def note(self, _text: str) -> None:
        pass


@pytest.mark.parametrize(("answer", "given"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_the_answer_counts(monkeypatch, answer: str, given: bool) -> None:
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _prompt: answer.strip())
    ask = approval(Asked(), automatic=False)
    assert ask("diff", "evidence") is given


def test_ctrl_c_at_the_question_is_no_answer(monkeypatch) -> None:
    def abort(*_words: object, **_options: object) -> bool:
        raise click.Abort

    monkeypatch.setattr(click, "confirm", abort)
    ask = approval(Asked(), automatic=False)
    with pytest.raises(KeyboardInterrupt):
        ask("diff", "evidence")


# --- resume --------------------------------------------------------------------------------------------


@pytest.fixture
def remembered(tmp_path, monkeypatch):
    """A session's directory with what it remembers of its call; ``write(**changes)``."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "session"
    root.mkdir()
    names = [option.name for option in takes(OptimizeSettings)(click.command()(lambda: None)).params]
    content = {
        "words": ["k.hip", "./app"],
        "flags": dict.fromkeys(names),
        "proposer": "ranked",
        "suffix": "_opt",
        "proposer_options": {},
        "directory": str(tmp_path),
        "command_name": "rpl optimize",
    }

    def write(**changes):
        (root / "request.json").write_text(json.dumps({**content, **changes}))
        return root

    return write


@pytest.mark.parametrize("words", [("--max-iters", "9"), ("--allow-unverified",), ("--rtol", "1")])
def test_options_of_the_session_can_not_be_given_anew(rpl_cli, remembered, words) -> None:
    line = refused(rpl_cli("optimize", "--resume", remembered(), "--auto-approve", *words))
    assert words[0] in line
    assert "anew" in line


def test_another_command_can_not_be_given(rpl_cli, remembered) -> None:
    assert "own command" in refused(rpl_cli("optimize", "--resume", remembered(), "--auto-approve", "./app"))


def test_a_command_whose_secret_was_not_kept_is_asked_for_again(rpl_cli, remembered) -> None:
    root = remembered(words=["k.hip", "./app", "--token=***"])
    line = refused(rpl_cli("optimize", "--resume", root, "--auto-approve"))
    assert "./app '--token=***'" in line
    assert "say it again" in line
    other = ("--", "k.hip", "./other", "--token=s3cr3t")
    assert "say it again" in refused(rpl_cli("optimize", "--resume", root, "--auto-approve", *other))
    same = ("--", "k.hip", "./app", "--token=s3cr3t")
    later = rpl_cli("optimize", "--resume", root, "--auto-approve", *same)
    assert "say it again" not in later.stderr  # what is asked now is the session itself
    assert "stopped before it began" in refused(later, 65)


def test_an_option_whose_secret_was_not_kept_can_not_be_resumed(rpl_cli, remembered) -> None:
    root = remembered(flags={"build_command": "make TOKEN=***"})
    line = refused(rpl_cli("optimize", "--resume", root, "--auto-approve"))
    assert "build_command held a secret" in line
    assert "--keep-command" in line


@pytest.mark.parametrize("keep", [False, True])
def test_what_a_session_remembers_holds_no_secret_unless_it_is_wanted(keep) -> None:
    flags = {
        "build_command": "make TOKEN=s3cr3t",
        "validate": ("./v --password s3cr3t",),
        "keep_command": keep,
    }
    call = Call(("k.hip", "./app", "--token", "s3cr3t"), flags, "ranked", "_opt")
    assert ("s3cr3t" in json.dumps(remembered_of(call))) is keep
    assert ("s3cr3t" in json.dumps(call.plain_options)) is keep


def test_another_command_can_not_resume_it(rpl_cli, remembered) -> None:
    root = remembered(command_name="rpl llm-optimize")
    line = refused(rpl_cli("optimize", "--resume", root, "--auto-approve"))
    assert f"Next: rpl llm-optimize --resume {root}" in line


def test_a_wrong_output_is_refused_before_anything_runs(rpl_cli, tmp_path) -> None:
    source = tmp_path / "k.hip"
    source.write_text("__global__ void k() {}")
    for wrong in ("/etc/passwd", "out.bin:f99"):
        words = ("optimize", source, "./app", "--auto-approve", "--output-file", wrong)
        assert wrong in refused(rpl_cli(*words))


def test_it_is_resumed_where_it_began(rpl_cli, remembered) -> None:
    root = remembered(directory="/elsewhere")
    assert "cd /elsewhere" in refused(rpl_cli("optimize", "--resume", root, "--auto-approve"))


@pytest.mark.parametrize(
    "changes",
    [
        {"flags": {"max_iters": "many"}},
        {"flags": {"rtol": "nan"}},
        {"flags": {"outputs": "'"}},
        {"flags": 7},
        {"words": 7},
        {"proposer_options": [1]},
    ],
)
def test_a_damaged_memory_is_bad_data(rpl_cli, remembered, changes) -> None:
    root = remembered(**changes)
    assert "request.json" in refused(rpl_cli("optimize", "--resume", root, "--auto-approve"), 65)


def test_no_session(rpl_cli, tmp_path) -> None:
    pipe = tmp_path / "pipe"
    pipe.mkdir()
    os.mkfifo(pipe / "request.json")
    for place in (tmp_path, tmp_path / "nowhere", pipe):
        assert "no session" in refused(rpl_cli("optimize", "--resume", place, "--auto-approve"))


def test_a_session_without_ledger_never_began(rpl_cli, remembered) -> None:
    root = remembered()
    assert "before it began" in refused(rpl_cli("optimize", "--resume", root, "--auto-approve"), 65)


@pytest.mark.parametrize(("anew", "holds"), [(None, 600.0), (5.0, 5.0)])
def test_a_new_call_may_give_a_new_time_budget(remembered, anew: float | None, holds: float) -> None:
    command = takes(OptimizeSettings)(click.command()(lambda: None))
    flags = {option.name: None for option in command.params}
    root = remembered(flags={**flags, "time_budget": 600.0, "outputs": "'a b' c", "rtol": 1e-5})
    of_this_call = {**flags, "resume": root, "auto_approve": True, "time_budget": anew}
    begun, call = recalled(root, Call((), of_this_call, "other", "_other"), click.Context(command))
    assert (begun.flags["time_budget"], call.flags["time_budget"]) == (600.0, holds)
    assert (call.flags["outputs"], call.flags["rtol"]) == (("a b", "c"), 1e-5)
    assert (call.flags["auto_approve"], begun.flags["auto_approve"]) == (True, None)
    assert (call.words, call.proposer, call.suffix) == (("k.hip", "./app"), "ranked", "_opt")
