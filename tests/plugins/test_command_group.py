"""Sub-commands are found without being imported, and a broken one costs only itself."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from rpl_core.cli.main import LazyGroup
from rpl_core.errors import MissingError, RplError

COMMAND = """
import pathlib, click
pathlib.Path(__file__).with_suffix(".imported").touch()

@click.command()
@click.option("--times", default=1)
def hello(times):
    "Say hello."
    click.echo("hello" * times)

not_a_command = 42
"""


@pytest.fixture
def group(rpl_site):
    rpl_site.module("hello_cmd", COMMAND, header="")
    return LazyGroup("rpl", lazy_commands={"own": ("rpl_core.cli.installation:doctor", "Our own command.")})


def call(group, *arguments):
    return CliRunner().invoke(group, arguments)


def test_a_plugin_command_is_listed_without_importing_it(rpl_site, group):
    rpl_site.distribution("rpl-hello", {"rpl.commands": {"hello": "hello_cmd:hello"}})
    result = call(group, "--help")
    assert result.exit_code == 0
    assert "(from rpl-hello)" in result.stdout
    assert "Our own command." in result.stdout
    assert not (rpl_site.folder / "hello_cmd.imported").exists()


def test_a_plugin_command_runs_with_its_options(rpl_site, group):
    rpl_site.distribution("rpl-hello", {"rpl.commands": {"hello": "hello_cmd:hello"}})
    assert call(group, "hello", "--times", "2").stdout == "hellohello\n"


def test_a_command_that_fails_names_its_distribution(rpl_site, group):
    rpl_site.module("bad_cmd", "import click\n@click.command()\ndef bad():\n    {}['x']\n", header="")
    rpl_site.distribution("rpl-bad", {"rpl.commands": {"bad": "bad_cmd:bad"}})
    error = call(group, "bad").exception
    assert isinstance(error, RplError)
    assert "command 'bad' of rpl-bad failed: KeyError" in error.one_line()


def test_a_command_whose_package_is_absent_says_so_in_help_and_when_called(rpl_site, group):
    rpl_site.distribution("rpl-gone", {"rpl.commands": {"gone": "not_installed_anywhere:main"}})
    assert "(broken: no module named 'not_installed_anywhere')" in call(group, "--help").stdout
    error = call(group, "gone", "--any", "thing").exception
    assert isinstance(error, MissingError)
    assert "command 'gone' of rpl-gone can't be loaded" in error.one_line()


@pytest.mark.parametrize(
    ("source", "fragment"),
    [
        ("1 / 0\n", "ZeroDivisionError"),
        ("import sys\nsys.exit(5)\n", "sys.exit(5)"),
        ("cmd = 42\n", "is not a click command"),
        ("", "AttributeError"),
    ],
)
def test_a_command_that_can_not_be_imported_fails_in_one_line(rpl_site, group, source, fragment):
    rpl_site.module("bad_cmd", source, header="")
    rpl_site.distribution("rpl-bad", {"rpl.commands": {"bad": "bad_cmd:cmd"}})
    assert call(group, "--help").exit_code == 0
    error = call(group, "bad").exception
    assert isinstance(error, MissingError)
    assert fragment in error.one_line()


def test_completion_survives_a_broken_command(rpl_site, group):
    rpl_site.module("bad_cmd", "1 / 0\n", header="")
    rpl_site.distribution("rpl-bad", {"rpl.commands": {"bad": "bad_cmd:cmd"}})
    from click.shell_completion import ShellComplete

    completer = ShellComplete(group, {}, "rpl", "_RPL_COMPLETE")
    assert {item.value for item in completer.get_completions([], "")} >= {"bad", "own"}


def test_plugins_add_commands_but_replace_none(rpl_site, group):
    rpl_site.distribution("rpl-thief", {"rpl.commands": {"own": "hello_cmd:hello"}})
    assert "rpl-thief" not in call(group, "--help").stdout
    assert group.get_command(click.Context(group), "own").name == "doctor"


def test_a_command_claimed_twice_is_given_to_nobody(rpl_site, group):
    rpl_site.distribution("rpl-a", {"rpl.commands": {"hello": "hello_cmd:hello"}})
    rpl_site.distribution("rpl-b", {"rpl.commands": {"hello": "hello_cmd:hello"}})
    assert "(broken: claimed by rpl-a, rpl-b)" in call(group, "--help").stdout
    assert isinstance(call(group, "hello").exception, MissingError)


def test_only_the_named_distributions_add_commands(rpl_site, group, monkeypatch):
    rpl_site.distribution("rpl-hello", {"rpl.commands": {"hello": "hello_cmd:hello"}})
    monkeypatch.setenv("RPL_LOAD_PLUGINS", "rpl-other")
    assert "hello" not in call(group, "--help").stdout


def test_an_unknown_command_is_a_usage_error(group):
    assert call(group, "nothing").exit_code == 2


PROBE = """
import sys
from rpl_core.cli import main
sys.argv = ["rpl", {argument!r}]
main()
heavy = {{"numpy", "networkx", "pydantic", "rich", "pluggy", "stevedore", "openai"}} & set(sys.modules)
sys.exit(f"imported {{sorted(heavy)}}" if heavy else 0)
"""


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(argument):
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(argument=argument)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
