"""Paths and commands of an agent: what leaves the root, or was not allowed, is refused at once."""

from __future__ import annotations

import json

import pytest

from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_mcp.optimizing import require_resumable, state_of
from rpl_mcp.running import Allowed


@pytest.fixture
def allowed(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "sub", outside):
        folder.mkdir(parents=True)
    (root / "sub" / "run.db").touch()
    (outside / "secret").touch()
    (root / "link").symlink_to(outside)
    (root / "inner").symlink_to(root / "sub")
    commands = ["./app 100", "make 'my app'", "hipcc -O3 {source} -o {output}"]
    return Allowed.of(root, commands, accept=False)


def test_what_lies_below_the_root_is_found(allowed):
    assert allowed.path("sub/run.db") == allowed.root / "sub" / "run.db"
    assert allowed.told(allowed.path("./sub")) == "sub"
    assert allowed.result("out.bin:f32") == "out.bin:f32"
    assert allowed.result("-") == "-"


@pytest.mark.parametrize(
    "text",
    [
        *("/etc/passwd", "../outside/secret", "sub/../../outside", "sub/..", "link", "link/secret"),
        *("inner/run.db", "", "a\0b", "//etc"),
    ],
)
def test_what_leaves_the_root_or_might_is_refused(allowed, text):
    with pytest.raises(BadDataError, match=r"not a path below the root|goes through a link"):
        allowed.path(text)
    with pytest.raises(BadDataError):
        allowed.result(text)


def test_a_folder_of_runs_that_is_a_link_takes_no_run(allowed, tmp_path):
    (allowed.root / "rpl-runs").symlink_to(tmp_path / "outside")
    with pytest.raises(BadDataError, match="goes through a link"):
        allowed.new("profile")
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["secret"]


def test_what_is_not_there_is_named_without_control_characters(allowed):
    with pytest.raises(MissingError) as error:
        allowed.path("no\x1b[2Jthing")
    assert error.value.fact == r"there is no no\x1b[2Jthing"


def test_commands_are_allowed_word_for_word(allowed):
    assert allowed.command(["./app", "100"]) == ("./app", "100")
    assert allowed.command(["make", "my app"]) == ("make", "my app")
    for words in (["./app"], ["./app", "100", "-x"], ["./app 100"], ["make", "my", "app"], ["sh"], []):
        with pytest.raises(UsageError, match="not allowed"):
            allowed.command(words)


@pytest.mark.parametrize("text", ["", "   ", "'open", "'./my app'"])
def test_a_command_that_rpl_would_take_for_another_can_t_be_allowed(tmp_path, text):
    with pytest.raises(UsageError, match="--allow-command"):
        Allowed.of(tmp_path, [text], accept=False)


@pytest.fixture
def session(allowed):
    """``session(**flags)``: a session that was begun with these options beside the usual ones."""

    def make(words=("./app", "100"), command_name="rpl optimize", **flags):
        folder = allowed.root / "session"
        folder.mkdir(exist_ok=True)
        (folder / "ledger.jsonl").touch()
        (allowed.root / "a.hip").touch()
        usual = {"source": str(allowed.root / "a.hip"), "build_command": "hipcc -O3 {source} -o {output}"}
        request = {"words": list(words), "flags": {**usual, **flags}, "proposer_options": {}}
        (folder / "request.json").write_text(json.dumps({**request, "command_name": command_name}))
        return folder

    return make


def test_a_session_of_allowed_commands_may_go_on(allowed, session):
    require_resumable(session(), allowed)
    require_resumable(session(validate="'./app 100'", traffic_gate=True, in_place=False), allowed)


@pytest.mark.parametrize(
    "changed",
    [
        {"words": ("./other",)},
        {"command_name": "rpl llm-optimize"},
        {"build_command": "sh -c id"},
        {"build_command": None},
        {"validate": "'sh -c id'"},
        {"validate": "'./app 100' 'sh -c id'"},
        {"source": "/etc/passwd"},
        {"binary": "/usr/bin/id"},
        {"in_place": True},
        {"allow_unverified": True},
        {"traffic_gate": False},
        {"sign": "/etc/passwd"},
        {"replay_launcher": "sh -c id"},
        {"project": "."},
    ],
)
def test_a_session_that_would_do_more_is_not_resumed(allowed, session, changed):
    with pytest.raises((UsageError, BadDataError)):
        require_resumable(session(**changed), allowed)


def test_a_damaged_request_is_bad_data(allowed, session):
    folder = session()
    (folder / "request.json").write_text("[]")
    with pytest.raises(BadDataError, match="is damaged"):
        require_resumable(folder, allowed)


@pytest.mark.parametrize("name", ["original/a.hip", "ledger.jsonl", "optimize.json", "original"])
def test_a_session_from_elsewhere_shows_no_file_outside(allowed, session, name):
    """Such as one in a cloned project, whose links lead to a key of the user."""
    folder, secret = session(), allowed.root.parent / "outside"
    (folder / "original").mkdir()
    (folder / "original" / "a.hip").write_text("__global__ void f() {}\n")
    (folder / "optimize.json").write_text("{}")
    target = secret if name == "original" else secret / "secret"
    if name == "original":
        (folder / "original" / "a.hip").unlink()
        (folder / "original").rmdir()
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(target)
    with pytest.raises(BadDataError, match="goes through a link"):
        state_of(allowed, folder, {})
