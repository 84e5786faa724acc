"""The plugin documents are run: files are written, commands give the printed output."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import entry_points
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs" / "plugins"
BLOCK = re.compile(
    r"^<!-- (file: (?P<file>\S+)|run) -->\n```\w+\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Runs commands in a folder with an environment of its own, which sees what is installed here."""
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True)
    (installed,) = (environment / "lib").glob("python*/site-packages")
    (installed / "seen.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    start = "import sys; from rpl_core.cli import main; sys.exit(main())"
    python = shlex.quote(str(environment / "bin" / "python"))
    for name, words in {"rpl": f"-c {shlex.quote(start)}", "pip": "-m pip"}.items():
        script = environment / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {python} {words} "$@"\n')
        script.chmod(0o755)
    folder = tmp_path / "project"
    folder.mkdir()
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("RPL_", "PYTEST_"))}
    variables |= {
        "PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this as "do not isolate"
        "PIP_NO_DEPS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        # The tutorial shows a machine without the other transformations of this checkout.
        "RPL_LOAD_PLUGINS": "rpl-core,rpl-optimize,rpl-unroll-hint",
    }

    def run(script):
        return subprocess.run(
            ["bash", "-c", f"set -o pipefail\n{script}"],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env=variables,
        )

    run.folder, run.environment = folder, variables
    return run


def _squeezed(text):
    """Columns of a table are as wide as the plugins of this checkout make them."""
    return re.sub(" +", " ", text)


def play(page, shell):
    """Write each file and run each command of ``page`` in order; returns how many commands were run."""
    commands = 0
    for block in BLOCK.finditer(page):
        if block["file"]:
            path = shell.folder / block["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["body"], encoding="utf-8")
            continue
        for command, expected in split_console(block["body"]):
            commands += 1
            if command.startswith("export "):
                name, _, value = command.removeprefix("export ").partition("=")
                shell.environment[name] = value
            elif command.startswith("unset "):
                del shell.environment[command.removeprefix("unset ")]
            else:
                done = shell(command)
                assert done.returncode == 0 or "| diff " in command, f"$ {command}\n{done.stderr}"
                assert re.fullmatch(pattern_of(_squeezed(expected)), _squeezed(done.stdout)), (
                    f"$ {command}\n{done.stdout}{done.stderr}"
                )
    return commands


def split_console(body):
    """Pairs of a command line and the output that follows it."""
    parts = re.split(r"^\$ (.*)\n", body, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def pattern_of(expected):
    return re.escape(expected).replace(re.escape("..."), ".*")


def test_the_tutorial_works_as_printed(shell):
    assert play((DOCS / "tutorial.md").read_text(encoding="utf-8"), shell) == 9


def test_a_figure_goes_all_the_way_as_printed(shell):
    needed = ("core", "codeobject", "analysis", "report", "rocprofv3")
    shell.environment["RPL_LOAD_PLUGINS"] = ",".join(f"rpl-{name}" for name in needed)
    assert play((DOCS / "figures.md").read_text(encoding="utf-8"), shell) == 7


def test_a_device_in_one_hour_works_as_printed(shell):
    shell.environment["RPL_LOAD_PLUGINS"] = "rpl-core,rpl-amdgpu"
    assert play((DOCS / "device.md").read_text(encoding="utf-8"), shell) == 4


def test_the_examples_of_the_testing_page_pass(shell):
    play((DOCS / "testing.md").read_text(encoding="utf-8"), shell)
    done = shell(f"{shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider .")
    assert "8 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("page", sorted((DOCS / "kinds").glob("*.md")), ids=lambda page: page.stem)
def test_the_plugin_of_each_kind_is_built_installed_and_works_as_printed(page, shell):
    text = page.read_text(encoding="utf-8")
    distribution = re.search(r'^name = "(rpl-[\w-]+)"$', text, re.MULTILINE)[1]
    needed = (
        "core",
        "codeobject",
        "analysis",
        "report",
        "rocprofv3",
        "compare",
        "optimize",
        "autotune",
        "vmreplay",
        "llm-unroll",
    )
    shell.environment["RPL_LOAD_PLUGINS"] = ",".join([*(f"rpl-{name}" for name in needed), distribution])
    assert play(text, shell) >= 2
    modules = sorted(shell.folder.glob("rpl_*.py"))
    words = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(shell.folder / "cache"))
    done = shell(shlex.join([*words, *map(str, modules)]))
    assert done.returncode == 0, done.stdout


def _kinds():
    """Every kind of contribution, whichever distribution of this project owns it."""
    from rpl_core.plugins.catalog import KINDS

    owned = [kind for entry in entry_points(group="rpl.hookspecs") for kind in entry.load().KINDS]
    assert len(owned) > 10
    return (*KINDS, *owned)


def test_every_kind_has_a_page_with_a_plugin():
    """Each hook is implemented on a page that brings its own ``pyproject.toml``."""
    complete = [
        text for page in DOCS.rglob("*.md") if "<!-- file: pyproject.toml -->" in (text := page.read_text())
    ]
    for kind in _kinds():
        assert any(f"def {kind.hook}(" in text for text in complete), kind.hook


def test_every_contract_check_is_documented():
    from rpl_testkit import contracts

    page = (DOCS / "testing.md").read_text(encoding="utf-8")
    for name in contracts.__all__:
        assert f"`{name}" in page, name


def test_every_fixture_is_documented():
    from rpl_testkit import pytest_plugin

    source = Path(pytest_plugin.__file__).read_text(encoding="utf-8")
    fixtures = re.findall(r"@pytest\.fixture.*?\ndef (\w+)\(", source)
    page = (DOCS / "testing.md").read_text(encoding="utf-8")
    assert fixtures
    for name in fixtures:
        assert re.search(rf"^\| `{name}\b", page, re.MULTILINE), name


def test_every_status_is_documented():
    from rpl_core.plugins.discovery import PluginStatus

    page = (DOCS / "index.md").read_text(encoding="utf-8")
    for status in PluginStatus:
        assert f"| `{status.value}` |" in page


def test_every_hook_is_in_the_overview():
    page = (DOCS / "index.md").read_text(encoding="utf-8")
    for kind in _kinds():
        assert f"`{kind.hook}`" in page


def test_links_between_the_pages_lead_somewhere():
    for page in DOCS.rglob("*.md"):
        for target in re.findall(r"\]\((?!http)([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
