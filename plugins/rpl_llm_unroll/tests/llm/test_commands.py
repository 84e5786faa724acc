"""``rpl prompt`` and ``rpl llm-optimize`` as users call them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from rpl_testkit.llm_server import LlmServer, Scripted

from .sources import SOURCE, fenced

SECRET = "9f8a7b6c5d4e3f2a1b0c9f8a7b6c5d4e"


@pytest.fixture
def place(tmp_path: Path, rpl_standin_rocprofv3: Path) -> Path:
    """A folder with a source, and an application that the stand-in for the profiler records."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "k.hip").write_bytes(SOURCE)
    app = folder / "app"
    app.write_text("#!/bin/sh\nexit 0\n")
    app.chmod(0o755)
    return folder


def test_without_a_sandbox_a_models_code_is_not_run_unless_the_user_says_so(place, rpl_cli, monkeypatch):
    """As in a container without bubblewrap and user namespaces."""
    from rpl_optimize.running import sandbox

    monkeypatch.setattr(sandbox, "_working", lambda: sandbox.Sandbox(None, "unshare: not permitted"))
    words = ("llm-optimize", "k.hip", "./app", "--auto-approve", "--model", "m", "-o", "session")
    for switch in (None, "builds", "on", ""):
        env = {"OPENAI_API_KEY": "k" * 20, **({} if switch is None else {"RPL_SANDBOX": switch})}
        outcome = rpl_cli(*words, cwd=place, env=env).assert_exit(69)
        assert "there is no sandbox for the code that 'llm' writes: unshare: not permitted" in outcome.stderr
        assert "RPL_SANDBOX=off" in outcome.stderr
        assert not (place / "session").exists()
    off = rpl_cli(*words, cwd=place, env={"OPENAI_API_KEY": "k" * 20, "RPL_SANDBOX": "off"})
    assert "there is no sandbox" not in off.stderr
    rules = rpl_cli("optimize", "k.hip", "./app", "--auto-approve", "-o", "rules", cwd=place)
    assert "there is no sandbox" not in rules.stderr


def test_neither_is_it_by_a_session_that_is_resumed(place, rpl_cli, monkeypatch):
    """Begun on a machine with a sandbox, or with leave that is not given again."""
    from rpl_optimize.running import sandbox

    monkeypatch.setattr(sandbox, "_working", lambda: sandbox.Sandbox(None, "unshare: not permitted"))
    session = place / "session"
    session.mkdir()
    begun = {"command_name": "rpl llm-optimize", "proposer": "llm", "suffix": "", "proposer_options": {}}
    begun |= {"words": ["k.hip", "./app"], "flags": {}, "directory": str(place)}
    (session / "request.json").write_text(json.dumps(begun))
    words = ("llm-optimize", "--resume", "session", "--auto-approve")
    for switch in (None, "builds"):
        env = {"OPENAI_API_KEY": "k" * 20, **({} if switch is None else {"RPL_SANDBOX": switch})}
        outcome = rpl_cli(*words, cwd=place, env=env).assert_exit(69)
        assert "there is no sandbox for the code that 'llm' writes: unshare: not permitted" in outcome.stderr
    # With leave it is the missing ledger that stops it.
    off = rpl_cli(*words, cwd=place, env={"OPENAI_API_KEY": "k" * 20, "RPL_SANDBOX": "off"}).assert_exit(65)
    assert "stopped before it began" in off.stderr


def test_prompt_profiles_the_application(place, rpl_cli):
    outcome = rpl_cli("prompt", "k.hip", "./app 100", "--kernel", "blend", cwd=place).assert_ok()
    assert "## What the kernel costs" in outcome.stdout
    assert "(synthetic, 3 runs" in outcome.stdout
    assert "not collected: the run does not launch it" in outcome.stdout
    assert "warning: the run holds no kernel of k.hip" in outcome.stderr
    (run,) = [p for p in (place / "rpl-runs").iterdir() if not p.is_symlink()]
    assert (run / "profile.json").is_file()
    again = rpl_cli("prompt", "k.hip", "--kernel", "blend", "--from", str(run), cwd=place).assert_ok()
    assert again.stdout.replace("no built program was given", "") == outcome.stdout.replace(
        "app: neither an ELF file nor an offload bundle", ""
    )


def test_prompt_as_json_is_one_document(place, rpl_cli):
    rpl_cli("profile", "-o", "run", "--", "./app", cwd=place).assert_ok()
    words = ("prompt", "k.hip", "--from", "run", "--kernel", "blend", "--json")
    document = rpl_cli(*words, cwd=place).assert_ok().json()
    assert (document["kernel"], document["file"], document["form"]) == ("blend", "k.hip", "standard")
    assert [m["role"] for m in document["messages"]] == ["system", "user"]
    assert rpl_cli(*words, cwd=place).json() == document
    compact = rpl_cli(*words, "--compact", cwd=place).json()
    full = rpl_cli(*words, "--full-source", cwd=place).json()
    assert compact["bytes"] < document["bytes"] < full["bytes"]


def test_prompt_warns_of_secrets_without_showing_them(place, rpl_cli):
    (place / "k.hip").write_bytes(
        SOURCE.replace(b"__shared__", f'// key = "{SECRET}"\n  __shared__'.encode(), 1)
    )
    rpl_cli("profile", "-o", "run", "--", "./app", cwd=place).assert_ok()
    outcome = rpl_cli("prompt", "k.hip", "--from", "run", "--kernel", "blend", cwd=place).assert_ok()
    assert "k.hip, line 10 looks like" in outcome.stderr
    assert SECRET not in outcome.stderr


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("prompt", "k.hip"), 64, "no command to profile"),
        (("prompt", "absent.hip", "./app"), 69, "no source file"),
        (("prompt", "k.hip", "--from", "absent"), 69, "there is no run at absent"),
        (("prompt", "k.hip", "--from", "run", "--kernel", "x"), 65, "it defines: blend, other"),
        (("prompt", "k.hip", "--from", "run", "--compact", "--full-source"), 64, "exclude each other"),
        (("llm-optimize", "k.hip", "./app", "--auto-approve"), 64, "no model is named"),
        (("llm-optimize", "k.hip", "./app", "--auto-approve", "--model", "m"), 69, "OPENAI_API_KEY"),
        (
            ("llm-optimize", "k.hip", "./app", "--auto-approve", "--model", "m", "--money-budget", "1"),
            64,
            "what tokens cost",
        ),
        (
            ("llm-optimize", "k.hip", "./app", "--auto-approve", "--model", "m", "--replay-llm", "absent"),
            69,
            "no recorded exchanges",
        ),
    ],
)
def test_wrong_calls_end_before_anything_is_done(place, rpl_cli, words, code, says, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    if "run" in words:
        rpl_cli("profile", "-o", "run", "--", "./app", cwd=place).assert_ok()
    outcome = rpl_cli(*words, cwd=place).assert_exit(code)
    assert says in outcome.stderr
    assert outcome.stdout == ""
    assert not (place / "rpl-runs").exists()


def test_settings_may_stand_in_the_configuration_file(place, rpl_cli, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (place / "rpl.toml").write_text('[plugins.llm-unroll]\nmodel = "m"\nmoney-budget = 3\n')
    outcome = rpl_cli("llm-optimize", "k.hip", "./app", "--auto-approve", cwd=place)
    assert "what tokens cost" in outcome.assert_exit(64).stderr


EXAMPLE = Path(__file__).parents[4] / "examples" / "optimize" / "smooth.hip"
SMOOTH = "smooth(float const*, float const*, float*, int, int)"


@attrs.define
class SmoothSession:
    """The example's kernel in a session of the stand-ins, where unrolling by four takes a fifth less."""

    bench: Any
    command_line: Any
    text: str

    @property
    def kernel(self) -> str:
        begin = self.text.index("__global__ __launch_bounds__(256) void smooth")
        return self.text[begin : self.text.index("\n}\n", begin) + 2]

    def unrolled(self, factor: int) -> str:
        return self.kernel.replace("    for (int k", f"#pragma unroll {factor}\n    for (int k")

    @property
    def accepted(self) -> Path:
        return self.bench.folder / "smooth_llm_opt.hip"

    def run(self, name: str, *options: str) -> Path:
        kernels = [{"name": SMOOTH, "nominal_ns": 800_000, "launches": 10, "work": {"read_bytes": 4_000_000}}]
        speed = [{"source_matches": "#pragma unroll 4", "kernel": SMOOTH, "factor": 0.8}]
        self.bench.declare(kernels, speed, cv=0.005)
        checked = ("--output-file", "smooth.out:f32", "--rtol", "1e-5", "--no-traffic-gate")
        words = ("--auto-approve", "--runs", "2", "--device", "gfx942", "--model", "m", "--max-iters", "1")
        outcome = self.command_line(
            *("llm-optimize", *words, *checked, "-o", name, *options, "./smooth", "64", "1"),
            cwd=self.bench.folder,
            env={"OPENAI_API_KEY": "k" * 20},
        ).assert_ok()
        assert "k" * 20 not in outcome.stdout + outcome.stderr
        assert (self.bench.folder / EXAMPLE.name).read_text(encoding="utf-8") == self.text
        return self.bench.folder / name


@pytest.fixture
def smooth(rpl_closed_loop_bench, rpl_cli, monkeypatch) -> SmoothSession:
    bench, text = rpl_closed_loop_bench, EXAMPLE.read_text(encoding="utf-8")
    source = bench.folder / EXAMPLE.name
    source.write_text(text, encoding="utf-8")
    bench.build(source)
    monkeypatch.setenv("RPL_ALLOW_SYNTHETIC_GATES", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return SmoothSession(bench, rpl_cli, text)


@pytest.mark.long
@pytest.mark.clang
def test_a_session_accepts_what_is_proven_and_replays_to_the_same_bytes(smooth, rpl_cli):
    faster = smooth.unrolled(4)
    script = ["a draft", fenced(smooth.kernel.replace("weights[k]", "weights[kk]")), fenced(faster)]
    with LlmServer([Scripted(text) for text in script]) as server:
        first = smooth.run("first", "--base-url", server.base_url)
        assert len(server.requests) == 3
    assert faster in smooth.accepted.read_text(encoding="utf-8")
    smooth.accepted.unlink()
    second = smooth.run("second", "--replay-llm", "first/exchanges.jsonl")
    log = "exchanges.jsonl"
    assert (second / log).read_bytes() == (first / log).read_bytes()
    for path in first.glob("candidates/*/smooth.hip"):
        assert (second / path.relative_to(first)).read_bytes() == path.read_bytes()
    assert json.loads((second / "optimize.json").read_text())["verdict"] == "accepted"
    rpl_cli("ledger", "verify", str(second)).assert_ok()


@pytest.mark.long
@pytest.mark.clang
def test_of_several_samples_the_fastest_alone_is_measured_and_accepted(smooth, rpl_cli):
    wrong = smooth.kernel.replace("weights[k]", "weights[kk]")
    script = [smooth.unrolled(2), wrong, smooth.unrolled(4), smooth.unrolled(8)]
    with LlmServer([Scripted(fenced(text)) for text in script]) as server:
        session = smooth.run("session", "--base-url", server.base_url, "--samples", "3")
        assert len(server.requests) == 4
        assert "identifier 'kk'" in server.requests[2]["messages"][-1]["content"]  # what the compiler said
    assert smooth.unrolled(4) in smooth.accepted.read_text(encoding="utf-8")
    (candidate,) = json.loads((session / "optimize.json").read_text())["candidates"]
    assert candidate["judgement"]["verdict"] == "accepted"
    lines = [json.loads(line) for line in (session / "samples.jsonl").read_text().splitlines()]
    slow, failed, fast, other = [line["value"] for line in lines]
    assert failed is None
    assert fast < 0.9 * slow
    assert fast < 0.9 * other
    rpl_cli("ledger", "verify", str(session)).assert_ok()
