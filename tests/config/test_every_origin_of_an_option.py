"""Where an option's value comes from, for every set of places that name one.

By the user guide a flag wins over an environment variable, that over the configuration file, that over what
the run was recorded with, that over the default. Each option is declared in one form; which places can name
it follows from what is declared, and which of them wins from the order above alone.
"""

from __future__ import annotations

import itertools
import json

import attrs
import pytest

from rpl_core.cli.command_options import analysis_request, plugin_options
from rpl_core.cli.session import Session
from rpl_core.errors import BadDataError, UsageError

PLUGIN = """
from rpl_core.config import flag, names, one_of, whole_within
from rpl_core.interfaces.options import CommandOption, OptionForm, SettingKind

VALUE, PROGRAM = SettingKind.VALUE, SettingKind.PROGRAM
COMMON = dict(commands=("analyze",), help="h")
level = whole_within(0, 9)

@hookimpl
def rpl_options():
    return (
        CommandOption(name="full-depth", parse=level, default=0, setting=True, recorded=True,
                      kind=VALUE, **COMMON),
        CommandOption(name="set-only", parse=level, default=0, setting=True, kind=VALUE, **COMMON),
        CommandOption(name="kept-only", parse=level, default=0, recorded=True, **COMMON),
        CommandOption(name="by-flag-only", parse=level, default=0, **COMMON),
        CommandOption(name="program", parse=level, default=0, setting=True, kind=PROGRAM, **COMMON),
        CommandOption(name="unstated", parse=level, default=0, setting=True, recorded=True, **COMMON),
        CommandOption(name="on-off", parse=flag, default=None, setting=True, recorded=True,
                      form=OptionForm.SWITCH, kind=VALUE, **COMMON),
        CommandOption(name="bare", parse=flag, default=None, form=OptionForm.FLAG, **COMMON),
        CommandOption(name="many", parse=level, default=(), form=OptionForm.REPEATED, **COMMON),
        CommandOption(name="elsewhere", parse=level, default=7, setting=True,
                      commands=("profile",), help="h"),
    )
"""
PLACES = ("flag", "environment", "file", "recorded")
#: Name -> the places that can name it at all, and whether only a trusted file can.
OPTIONS = {
    "full-depth": (PLACES, False),
    "set-only": (PLACES[:3], False),
    "kept-only": (("flag", "recorded"), False),
    "by-flag-only": (("flag",), False),
    "program": (PLACES[:3], True),
    "unstated": (PLACES, True),
}
#: Each place gives another figure.
GIVES = dict(zip(PLACES, (1, 2, 3, 4), strict=True))


@pytest.fixture
def request_for(rpl_site, tmp_path, monkeypatch):
    """What an analysis of a recorded run gets where the ``places`` of a name give ``values``."""
    rpl_site.plugin("origins", PLUGIN)
    monkeypatch.setenv("RPL_LOAD_PLUGINS", ",".join(rpl_site.distributions))
    run = tmp_path / "run"
    run.mkdir()

    def ask(name, values, *, distrust=None):
        key = name.replace("-", "_")
        options = {key: values["recorded"]} if "recorded" in values else {}
        manifest = {
            "tool_version": "1",
            "state": "complete",
            "created_utc": "2026-01-01T00:00:00Z",
            "command": ["./app"],
            "collector": "c",
            "options": options,
        }
        (run / "run.json").write_text(json.dumps(manifest))
        line = f"{name} = {json.dumps(values['file'])}" if "file" in values else ""
        (tmp_path / "rpl.toml").write_text(line)
        with monkeypatch.context() as patch:
            if "environment" in values:
                patch.setenv(f"RPL_{key.upper()}", str(values["environment"]))
            session = Session(config_file=str(tmp_path / "rpl.toml"))
            session.configuration = attrs.evolve(session.configuration, distrust=distrust)
            flags = {key: values["flag"]} if "flag" in values else {}
            return session, analysis_request(session, flags, run if options else None)

    return ask


@pytest.mark.parametrize("name", [*OPTIONS, "device"])
def test_the_first_place_that_can_name_it_wins(request_for, name):
    possible, only_trusted = OPTIONS.get(name, (PLACES, False))
    for count in range(len(PLACES) + 1):
        for named in itertools.combinations(PLACES, count):
            values = {place: f"gpu{GIVES[place]}" if name == "device" else GIVES[place] for place in named}
            if not set(named) <= set(possible) and "file" in set(named) - set(possible):
                continue  # unknown to the file: the next test
            session, request = request_for(name, values)
            winner = next((place for place in PLACES if place in named and place in possible), None)
            if name == "device":
                assert request.device == (values[winner] if winner else None), named
                continue
            option = next(o for o in plugin_options(session, "analyze") if o.name == name)
            assert request.options[option] == (GIVES[winner] if winner else 0), named
            if "file" in named and "recorded" not in named:
                _, doubted = request_for(name, values, distrust="anybody may write it")
                counting = [place for place in named if not (only_trusted and place == "file")]
                rest = [place for place in possible if place in counting]
                assert doubted.options[option] == (GIVES[rest[0]] if rest else 0), named


def test_what_is_no_setting_is_unknown_to_the_file(request_for):
    for name in ("kept-only", "by-flag-only", "bare", "many"):
        with pytest.raises(UsageError, match=f"unknown setting '{name}'"):
            request_for(name, {"file": 3})


@pytest.mark.parametrize("flag", [True, False, None])
@pytest.mark.parametrize("environment", ["yes", "0", None])
@pytest.mark.parametrize("recorded", [True, False, None])
def test_off_is_a_value_and_not_said_is_none(request_for, flag, environment, recorded):
    values = {"flag": flag, "environment": environment, "recorded": recorded}
    session, request = request_for("on-off", {k: v for k, v in values.items() if v is not None})
    option = next(o for o in plugin_options(session, "analyze") if o.name == "on-off")
    told = [flag, {"yes": True, "0": False, None: None}[environment], recorded]
    assert request.options[option] is next((value for value in told if value is not None), None)


def test_forms_without_a_setting(request_for):
    session, request = request_for("many", {"flag": ("3", "1", "3")})
    many = next(o for o in plugin_options(session, "analyze") if o.name == "many")
    assert request.options[many] == (3, 1, 3)
    assert request_for("many", {"flag": ()})[1].options[many] == ()
    session, request = request_for("bare", {"flag": True})
    bare = next(o for o in plugin_options(session, "analyze") if o.name == "bare")
    assert request.options[bare] is True
    assert request_for("bare", {})[1].options[bare] is None
    assert "elsewhere" not in request.options.by_name()


@pytest.mark.parametrize(
    ("place", "error", "says"),
    [
        ("flag", UsageError, "--full-depth: "),
        ("environment", UsageError, "setting 'full-depth' (environment RPL_FULL_DEPTH): "),
        ("file", UsageError, "setting 'full-depth' (file "),
        ("recorded", BadDataError, "was recorded with an impossible full-depth: "),
    ],
)
def test_an_impossible_value_is_traced_to_its_place(request_for, place, error, says):
    with pytest.raises(error) as caught:
        request_for("full-depth", {place: 10})
    assert says in caught.value.fact
    # One that does not win is not looked at, but for what the run itself holds.
    if place != "recorded":
        better = PLACES[: PLACES.index(place)]
        for other in better:
            request_for("full-depth", {place: 10, other: 1})
