"""What each option of `rpl optimize` changes of a session's request: that place, and nothing else.

One option at a time, as the command line reads it, against a request without it. A session that is resumed
asks for the same.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from rpl_core.cli.main import rpl
from rpl_core.cli.session import Session
from rpl_optimize.cli.optimize_request import Call, optimize_request, recalled, remembered

#: Words -> the places of the request that they set, with what is there then.
OPTIONS: dict[tuple[str, ...], dict[str, Any]] = {
    ("--kernel", "scale"): {"kernel": "scale"},
    ("--build", "hipcc {source} -o {output}"): {"build.build_command": "hipcc {source} -o {output}"},
    ("--compile-database", "db.json"): {"build.compile_database": Path("db.json")},
    ("--link-flags", "-lm '-Wl,-z now'"): {"build.link_flags": ("-lm", "-Wl,-z now")},
    ("--project", "tree"): {"build.project": Path("tree")},
    ("--binary", "lib.so"): {"build.binary": Path("lib.so")},
    ("--build-time-limit", "7"): {"build.time_limit_s": 7.0},
    ("--validate", "./check a", "--validate", "./b"): {"equivalence.validate": ("./check a", "./b")},
    ("--output-file", "-", "--output-file", "o:f32"): {"equivalence.outputs": ("-", "o:f32")},
    ("--rtol", "0.25"): {"equivalence.relative": 0.25},
    ("--atol", "0.125"): {"equivalence.absolute": 0.125},
    ("--allow-unverified",): {"policy.allow_unverified": True},
    ("--min-improvement", "0.3"): {"limits.min_improvement": 0.3},
    ("--max-iters", "17"): {"limits.candidates": 17},
    ("--time-budget", "99"): {"limits.time_budget_s": 99.0},
    ("--patience", "5"): {"limits.patience": 5},
    ("--in-place",): {"in_place": True},
    ("--keep-command",): {"keep_command": True},
    ("--allow-occupancy-loss",): {"policy.allow_occupancy_loss": True},
    ("--no-traffic-gate",): {"policy.traffic_gate": False},
    ("--placement-check",): {"policy.placement_check": True},
    ("--no-placement-check",): {"policy.placement_check": False},
    ("--force",): {"policy.force_noisy": True},
    ("--device", "mi300x"): {"analysis.device": "mi300x", "build.architecture": "gfx942"},
    ("--runs", "8"): {"runs": 8},
    ("--roofline",): {"roofline": True},
    ("--focus-critical",): {"trace_dependencies": True},
    ("--time-limit", "12"): {"time_limit_s": 12.0, "equivalence.time_limit_s": 12.0},
    # What is said of this call alone.
    ("--auto-approve",): {},
    ("--debug",): {},
    ("--json",): {},
    ("-o", "out"): {},
    ("--sign", "key"): {},
}


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """``ask(*words)``: the context of the command line, its call and the request that comes of it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.hip").write_text("__global__ void scale() {}\n")
    (tmp_path / "app").touch()
    session = Session()
    session.output = SimpleNamespace(note=lambda _text: None)
    parent = rpl.make_context("rpl", ["optimize"])
    parent.obj = session
    _, command, _ = rpl.resolve_command(parent, ["optimize"])

    def asked(*words: str, program: tuple[str, ...] = ("k.hip", "./app", "7 8")):
        context = command.make_context("optimize", [*words, "--", *program], parent=parent)
        flags = dict(context.params)
        given = flags.pop("application")
        call = Call(tuple(given), flags, flags.pop("proposer"), "_opt")
        return context, call, optimize_request(session, call)

    asked.session = session
    return asked


def places(value: Any, name: str = "") -> dict[str, Any]:
    """Each place of a request with what it holds."""
    if attrs.has(type(value)) and type(value).__name__ != "Options":
        parts = {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
    elif hasattr(type(value), "model_fields"):
        parts = {key: getattr(value, key) for key in type(value).model_fields}
    else:  # those of plugins are tested with the commands that they are of
        return {} if hasattr(value, "by_name") else {name: value}
    return {k: v for part, one in parts.items() for k, v in places(one, f"{name}.{part}".lstrip(".")).items()}


def test_one_place_for_each_option(ask, tmp_path):
    _, _, request = ask()
    plain = places(request)
    assert plain["command"] == plain["build.command"] == ("./app", "7 8")
    assert plain["source"] == plain["build.source"] == tmp_path / "k.hip"
    assert plain["build.place"] == tmp_path
    assert plain["equivalence.time_limit_s"] == 600.0
    for words, expected in OPTIONS.items():
        changed = {key: one for key, one in places(ask(*words)[2]).items() if one != plain[key]}
        assert changed == expected, words


def test_every_option_is_tried(ask):
    """Those that are left name another command, another metric, or who proposes."""
    context, _, _ = ask()
    own = [one for one in context.command.params if one.param_type_name == "option" and one.name != "help"]
    tried = {word for words in OPTIONS for word in words}
    left = {one.opts[-1] for one in own if not tried & {*one.opts, *one.secondary_opts}}
    assert left == {"--source", "--resume", "--step-by-step", "--metric", "--collector", "--proposer"}


def test_a_source_by_its_option_or_as_the_first_word(ask, tmp_path):
    by_word = ask()[2]
    assert places(ask("--source", "k.hip", program=("./app", "7 8"))[2]) == places(by_word)
    assert ask("--source", "k.hip", program=("./app 7 '8 9'",))[2].command == ("./app", "7", "8 9")
    assert ask(program=("k.hip", "./app 7"))[2].command == ("./app", "7")


def test_a_resumed_session_asks_for_the_same(ask, tmp_path):
    root = tmp_path / "session"
    root.mkdir()
    for words in OPTIONS:
        _, call, request = ask(*words)
        (root / "request.json").write_text(json.dumps(remembered(call)))
        anew = attrs.evolve(
            call, words=(), flags={**call.flags, "time_budget": None}, proposer="x", suffix="y"
        )
        plain_context = ask()[0]
        begun, resumed = recalled(root, anew, plain_context)
        assert places(optimize_request(ask.session, begun)) == places(request), words
        assert places(optimize_request(ask.session, resumed)) == places(request), words
        assert (resumed.proposer, resumed.suffix) == (call.proposer, "_opt")
