"""Which command of rpl a tool starts: its words, as the command line itself reads them, for drawn arguments.

What a client leaves out must mean what it means on the command line: defaults are compared with those of the
commands. Nothing runs.
"""

from __future__ import annotations

import inspect
import random
import shlex
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest

from rpl_core.cli.main import rpl
from rpl_core.cli.session import Session
from rpl_core.config import load_configuration
from rpl_mcp.optimizing import OptimizeTools, Walk
from rpl_mcp.tools import Tools

ROOT = Path("/root-of-it")


class StartedError(Exception):
    """In place of running: the words that would have been run."""


class Allows:
    """Allows everything, and says what it was asked."""

    commands = ()
    accept = False

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def path(self, text: str) -> Path:
        return ROOT / text

    def new(self, name: str) -> Path:
        return ROOT / "rpl-runs" / name

    def command(self, words: list[str]) -> list[str]:
        self.asked.append(list(words))
        return list(words)

    def result(self, text: str) -> str:
        return f"{ROOT}/{text}"


async def _refuse(words, _tell):
    raise StartedError([str(word) for word in words])


class Context:
    async def report_progress(self, *_: object) -> None: ...


@pytest.fixture
def started(monkeypatch):
    """``started(name, **arguments)``: what rpl reads of its words, and the allowed commands."""

    async def begin(_cls, _runner, words, _folder, tell):
        await _refuse(["optimize", "--step-by-step", *words], tell)

    monkeypatch.setattr(Walk, "begin", classmethod(begin))

    def call(name, **arguments):
        allows = Allows()
        runner = SimpleNamespace(run=_refuse)
        tools = Tools(allows, runner) if hasattr(Tools, name) else OptimizeTools(allows, runner)
        with pytest.raises(StartedError) as caught:
            anyio.run(lambda: getattr(tools, name)(Context(), **arguments))
        (words,) = caught.value.args
        return read(words), allows.asked

    return call


def read(words: list[str]) -> dict[str, object]:
    """What the command line makes of them."""
    context = rpl.make_context("rpl", list(words))
    context.obj = Session()
    command, rest = rpl, words
    while hasattr(command, "resolve_command"):
        name, found, rest = command.resolve_command(context, list(rest))
        context = found.make_context(name, list(rest), parent=context)
        if hasattr(found, "resolve_command"):
            rest = [*context._protected_args, *context.args]
        command = found
    return {"command": context.command_path, **context.params}


def defaults(name: str) -> dict[str, object]:
    """Of a tool's arguments, in their order."""
    call = getattr(Tools, name, None) or getattr(OptimizeTools, name)
    return {
        key: one.default
        for key, one in inspect.signature(call).parameters.items()
        if one.default is not one.empty
    }


APP = ["./app", "--n", "7 8"]


@pytest.mark.parametrize("seed", range(6))
def test_measuring_and_reading(started, seed):
    rng = random.Random(seed)
    device, kernel = rng.choice((None, "gfx942")), rng.choice((None, "-gemm", "a b"))
    given = {"runs": rng.randint(1, 100), "roofline": rng.random() < 0.5}
    asked, allowed = started("profile", command=APP, device=device, **given)
    assert asked["command"] == "rpl profile"
    assert allowed == [APP]
    assert (asked["device"], asked["runs"], asked["as_json"]) == (device, given["runs"], True)
    assert bool(asked["roofline"]) == given["roofline"]
    assert Path(asked["output"]) == ROOT / "rpl-runs" / "profile"
    assert list(asked["application"]) == APP
    asked, _ = started("analyse", recording="-run", device=device)
    assert (asked["command"], asked["device"], asked["quiet"]) == ("rpl analyze", device, True)
    assert list(asked["recordings"]) == [ROOT / "-run"]
    asked, _ = started("explain", run="r", kernel=kernel)
    assert (asked["command"], asked["kernel"], asked["directory"]) == ("rpl explain", kernel, ROOT / "r")
    faster = {"gemm=1": rng.choice((1.5, 2.0, 1234567.0, "free")), "-k": 0.25}
    asked, _ = started("what_if", run="r", faster=faster)
    assert asked["command"] == "rpl what-if"
    told = dict(text.rpartition("=")[::2] for text in asked["changes"])
    assert set(told) == set(faster)
    for name, factor in faster.items():
        assert (
            told[name] == factor if factor == "free" else float(told[name]) == pytest.approx(factor, rel=1e-5)
        )


@pytest.mark.parametrize("seed", range(6))
def test_comparing_and_capturing(started, seed):
    rng = random.Random(seed)
    above = rng.choice((0.0, 2.5, 1000.0))
    asked, _ = started("compare", base="a", new="b", fail_above_percent=above)
    assert asked["command"] == "rpl compare"
    assert asked["as_json"]
    assert asked["fail_above"] == f"{above:g}%"
    assert (asked["base"], asked["new"]) == (ROOT / "a", ROOT / "b")
    pairs = rng.randint(2, 200)
    asked, allowed = started(
        "compare_commands", base=APP, new=["./b c"], pairs=pairs, fail_above_percent=above
    )
    assert allowed == [APP, ["./b c"]]
    assert shlex.split(asked["base_command"]) == APP
    assert shlex.split(asked["new_command"]) == ["./b c"]
    assert (asked["pairs"], asked["interleaved"]) == (pairs, True)
    assert asked["fail_above"] == f"{above:g}%"
    kernel, dispatch = rng.choice((None, "gemm.*")), rng.randint(0, 9)
    asked, _ = started("isolate", command=APP, kernel=kernel, dispatch=dispatch)
    assert (asked["command"], asked["kernel"], asked["dispatch"]) == ("rpl isolate", kernel, dispatch)
    assert list(asked["application"]) == APP
    assert Path(asked["output"]) == ROOT / "rpl-runs" / "isolate" / "capture"
    pairs, ulps, replayer = rng.choice((None, 30)), rng.randint(0, 5), rng.choice((None, "hsa"))
    asked, _ = started(
        "replay_compare", capture="c", a="a.co", b="b.co", pairs=pairs, ulps=ulps, replayer=replayer
    )
    assert asked["command"] == "rpl replay compare"
    assert (asked["ulps"], asked["replayer"]) == (ulps, replayer)
    assert asked["pairs"] == pairs
    assert [Path(asked[name]) for name in ("folder", "a", "b")] == [
        ROOT / one for one in ("c", "a.co", "b.co")
    ]


@pytest.mark.parametrize("seed", range(6))
def test_optimizing(started, seed):
    rng = random.Random(seed)
    build = ["hipcc", "-D A", "{source}", "-o", "{output}"]
    given = {
        "rtol": rng.choice((0.0, 1e-7)),
        "atol": rng.choice((0.0, 0.125)),
        "kernel": rng.choice((None, "-k")),
        "device": rng.choice((None, "mi300x")),
        "metric": rng.choice((None, "modelled-issue-cycles")),
        "proposer": rng.choice(("ranked", "rules")),
        "runs": rng.randint(1, 100),
        "min_improvement": rng.choice((0.02, 0.3)),
        "patience": rng.randint(1, 9),
    }
    candidates = rng.randint(1, 9)
    checks, outputs = [["./check", "a b"]] * rng.randint(0, 2), ["-", "out.bin:f32"][: rng.randint(0, 2)]
    asked, allowed = started(
        "optimize_start",
        source="k.hip",
        command=APP,
        build=build,
        max_candidates=candidates,
        validate=checks,
        output_files=outputs,
        **given,
    )
    assert asked["command"] == "rpl optimize"
    assert allowed == [APP, build, *checks]
    assert {name: asked[name] for name in given} == given
    assert (asked["max_iters"], asked["step_by_step"]) == (candidates, True)
    assert [shlex.split(one) for one in asked["validate"]] == checks
    assert shlex.split(str(asked["build_command"])) == build
    assert [str(one) for one in asked["outputs"]] == [f"{ROOT}/{one}" for one in outputs]
    assert Path(str(asked["source"])) == ROOT / "k.hip"
    assert Path(str(asked["output"])) == ROOT / "rpl-runs" / "optimize-k"


def test_what_is_left_out_means_what_it_means_on_the_command_line(tmp_path):
    settings = load_configuration(start=tmp_path)
    assert defaults("profile")["runs"] == settings.resolve("runs").value
    compared = read(["compare", "a", "b"])
    assert f"{defaults('compare')['fail_above_percent']:g}%" == compared["fail_above"]
    assert defaults("compare_commands")["fail_above_percent"] == defaults("compare")["fail_above_percent"]
    assert defaults("compare_commands")["pairs"] == compared["pairs"]
    assert defaults("isolate")["dispatch"] == read(["isolate", "--", "a"])["dispatch"]
    assert defaults("replay_compare")["ulps"] == read(["replay", "compare", "c", "a", "b"])["ulps"]
    usual = read(["optimize", "k.hip", "--", "a"])
    own = defaults("optimize_start")
    assert {name: own[name] for name in ("rtol", "atol", "min_improvement", "patience")} == {
        name: usual[name] for name in ("rtol", "atol", "min_improvement", "patience")
    }
    assert {own[name] for name in ("kernel", "device", "metric")} == {None}
    assert defaults("profile")["top"] == defaults("analyse")["top"] == 20, "as docs/mcp.md says"
