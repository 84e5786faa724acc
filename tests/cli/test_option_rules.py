"""Which words are rpl's and which are the application's (design, section 6)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from rpl_core.cli.main import rpl


def test_behind_two_dashes_everything_is_the_applications(profiled, received):
    outcome = profiled("--quiet", "--", "./kernel_binary", "--json", "--runs", "9", "-o", "x", "--", "--help")
    float(outcome.assert_ok().stdout)
    assert received() == ["--json", "--runs", "9", "-o", "x", "--", "--help"]


def test_without_dashes_known_options_are_rpls_wherever_they_stand(profiled, received):
    profiled("./kernel_binary", "first", "--quiet", "second", "--flop-model", "per_op").assert_ok()
    assert received() == ["first", "second"]


def test_two_dashes_behind_the_application_protect_what_follows(profiled, received):
    profiled("./kernel_binary", "first", "--quiet", "--", "--json").assert_ok()
    assert received() == ["first", "--json"]


@pytest.mark.parametrize("option", ["--frobnicate", "-n", "-5", "--device-id=3"])
def test_unknown_option_is_a_usage_error_that_names_the_two_dashes(profiled, workplace, option):
    outcome = profiled("./kernel_binary", option).assert_exit(64)
    assert "put `--` before the application's command" in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert not (workplace / "rpl-runs").exists()


def test_unknown_option_of_another_command_points_to_its_help(rpl_cli):
    outcome = rpl_cli("report", "--frobnicate").assert_exit(64)
    assert "`rpl report --help`" in outcome.stderr
    assert "application" not in outcome.stderr


def test_quoted_command_is_split_as_a_shell_would(profiled, received):
    profiled("./kernel_binary 100 'two words' \"$HOME\" *").assert_ok()
    assert received() == ["100", "two words", "$HOME", "*"]


def test_a_program_whose_name_holds_a_space_is_not_split(profiled, program):
    program("#!/bin/sh\nexit 0\n", "my program")
    profiled("./my program").assert_ok()


def test_quoted_words_beside_others_are_not_split(profiled, received):
    profiled("./kernel_binary", "two words").assert_ok()
    assert received() == ["two words"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "no application given"),
        (("  ",), "empty"),
        (("./kernel_binary 'open",), "can't be split"),
        (("./kernel_binary", "--runs", "0"), "--runs: expected a whole number of at least 1"),
        (("./kernel_binary", "--runs", "many"), "'--runs'"),
        (("./kernel_binary", "--time-limit", "-1"), "--time-limit: expected a number above 0"),
        (("./kernel_binary", "--memory-bandwidth-gbps", "nan"), "--memory-bandwidth-gbps"),
        (("./kernel_binary", "--flop-model", "guess"), "--flop-model: expected one of per_op, valu_width"),
        (("./kernel_binary", "--json", "--quiet"), "exclude each other"),
        (("./kernel_binary", "--roofline", "--no-rocprof"), "--roofline needs a profiler"),
        (("./kernel_binary", "--from", "x.db"), "--from analyses a recording"),
        (("./kernel_binary", "--device"), "requires an argument"),
    ],
)
def test_wrong_usage_is_one_line_and_64(workplace, rpl_standin_rocprofv3, rpl_cli, words, message):
    outcome = rpl_cli("profile", *words).assert_exit(64)
    assert message in outcome.stderr
    assert outcome.stderr.startswith("rpl: ")
    assert outcome.stderr.count("\n") == 1
    assert outcome.stdout == ""


def test_dry_run_prints_the_commands_and_runs_nothing(profiled, workplace):
    outcome = profiled("--dry-run", "--device", "gfx942", "--roofline", "./kernel_binary", "a b").assert_ok()
    lines = outcome.stdout.splitlines()
    assert [line.split(" ")[0] for line in lines] == [
        "run_1",
        "without_calls",
        *(f"pass_{n}" for n in (1, 2, 3, 4)),
    ]
    assert all(line.endswith("-- ./kernel_binary 'a b'") for line in lines)
    assert "--kernel-trace" in lines[0]
    assert "--pmc" in lines[2]
    assert sorted(path.name for path in workplace.iterdir()) == ["kernel_binary"]


def test_dry_run_json_is_one_document(profiled):
    document = profiled("--dry-run", "--json", "./kernel_binary").assert_ok().json()
    assert len(document["dry_run"]) == 2


def test_dry_run_of_counters_needs_a_device(profiled):
    outcome = profiled("--dry-run", "--roofline", "./kernel_binary").assert_exit(64)
    assert "add --device NAME" in outcome.stderr


def test_clock_override_works_with_a_family_name(profiled):
    document = profiled("--device", "gfx942", "--clock-mhz", "1050", "./kernel_binary", "--json").json()
    assert document["gpu"]["clock_mhz"] == 1050
    assert document["gpu"]["theoretical_peak_flops"] == pytest.approx(81.7e12 / 2, rel=1e-3)


def test_override_without_a_device_says_that_it_changed_nothing(workplace, rpl_cli, rpl_make_rocpd):
    recording = rpl_make_rocpd([("kernel", 0, 1000)])
    outcome = rpl_cli(
        "--disable-plugin", "gfx942", "profile", "--from", recording, "--memory-bandwidth-gbps", "100"
    ).assert_ok()
    assert "--memory-bandwidth-gbps changed nothing" in outcome.stderr


def test_flag_beats_environment_beats_file(profiled, workplace, latest):
    (workplace / "rpl.toml").write_text("memory-bandwidth-gbps = 1\n")
    for environment, flags, expected in (
        ({}, (), 1),
        ({"RPL_MEMORY_BANDWIDTH_GBPS": "2"}, (), 2),
        ({"RPL_MEMORY_BANDWIDTH_GBPS": "2"}, ("--memory-bandwidth-gbps", "3"), 3),
    ):
        profiled("./kernel_binary", *flags, env=environment).assert_ok()
        assert latest("profile")["gpu"]["memory_bandwidth_gbps"] == expected


def test_bare_command_and_bare_group_print_help(rpl_cli):
    assert "profile" in rpl_cli().assert_ok().stdout
    assert "list" in rpl_cli("plugins").assert_ok().stdout
    assert "show" in rpl_cli("config").assert_ok().stdout


def test_a_misspelt_command_is_told_the_nearest_one(rpl_cli):
    assert "did you mean 'profile'?" in rpl_cli("profle", "./app").assert_exit(64).stderr
    assert "did you mean" not in rpl_cli("zzzzzz").assert_exit(64).stderr


def test_shells_complete_commands_and_options_of_plugins():
    program = Path(sys.executable).with_name("rpl")

    def offered(words):
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_RPL_COMPLETE": "bash_complete"}
        done = subprocess.run(
            [program], env={**os.environ, **asked}, capture_output=True, text=True, check=False
        )
        return done.stdout.splitlines()

    assert offered("rpl repo") == ["plain,report"]
    assert offered("rpl report --na") == ["plain,--names"]


def test_version_with_json_names_the_plugins(rpl_cli):
    for words in (("--version", "--json"), ("--json", "--version")):
        document = rpl_cli(*words).assert_ok().json()
        assert document["api"] == 2
        assert document["plugins"]["core"] == document["rpl"]


def test_json_before_the_command_is_refused_not_ignored(rpl_cli):
    assert "behind the command" in rpl_cli("--json", "report").assert_exit(64).stderr


def test_extra_counters_leave_the_recommended_passes_as_they_are(profiled):
    base = ("--dry-run", "--device", "gfx942", "--roofline", "-o", "run", "./kernel_binary")
    plain = profiled(*base).assert_ok().stdout.splitlines()
    more = profiled(*base, "--counters", "SQ_INSTS_LDS, SQ_INSTS_SMEM,SQ_WAVES").assert_ok()

    lines = more.stdout.splitlines()
    assert lines[: len(plain)] == plain
    assert len(lines) == len(plain) + 1
    assert "--pmc SQ_INSTS_LDS SQ_INSTS_SMEM " in lines[-1]


def test_the_usual_counters_feed_every_rule_and_extra_ones_are_recorded(profiled):
    options = ("--device", "gfx942", "--roofline", "--counters", "SQ_INSTS_LDS")
    profiled(*options, "-o", "run", "./kernel_binary").assert_ok()
    kernels = json.loads(Path("run/analysis.json").read_text())["kernels"]
    assert kernels
    assert all("not recorded" not in line for k in kernels for line in k["unknown"])
    assert {k["remedy"] for k in kernels} == {None}
    assert json.loads(Path("run/run.json").read_text())["options"]["counters"] == options[-1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--counters", "SQ_WAVES"), "add --roofline"),
        (("--roofline", "--counters", "SQ_WAVES,--help"), "is no counter"),
        (("--roofline", "--device", "gfx942", "--dry-run", "--counters", "MALL_X"), None),
    ],
)
def test_extra_counters_are_checked(profiled, words, message):
    outcome = profiled(*words, "./kernel_binary")
    if message is None:
        passes = [line for line in outcome.assert_ok().stdout.splitlines() if "--pmc" in line]
        assert len(passes) == 4
        assert not any("MALL_X" in line for line in passes)
    else:
        assert message in outcome.assert_exit(64).stderr


def _commands(command, path=()):
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from _commands(command.get_command(context, name), (*path, name))


@pytest.mark.parametrize(
    "command", [pytest.param(command, id="-".join(path) or "rpl") for path, command in _commands(rpl)]
)
def test_help_shows_no_markup(command):
    """A doubled backslash in a docstring makes click print its paragraph mark instead of obeying it."""
    with click.Context(command) as context:
        text = command.get_help(context)
    assert "\\b" not in text
    assert "\b" not in text
