"""The template bakes a plugin that loads and is clean, and refuses unusable names."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from cookiecutter.exceptions import FailedHookException
from cookiecutter.main import cookiecutter

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]


KINDS = ("check", "device", "reader", "analyzer", "transformation")


@pytest.fixture
def bake(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def call(name, kind="check", **texts):
        return Path(
            cookiecutter(
                str(ROOT / "templates" / "rpl-plugin"),
                no_input=True,
                output_dir=str(tmp_path),
                extra_context={"plugin_name": name, "kind": kind, **texts},
                default_config=True,
            )
        )

    return call


def test_a_baked_plugin_loads_as_a_module_under_development(bake, rpl_cli):
    project = bake("two-words")
    outcome = rpl_cli.process(
        *("-p", "rpl_two_words.plugin", "plugins", "info", "rpl_two_words.plugin", "--json"),
        env={"PYTHONPATH": str(project / "src"), "RPL_LOAD_PLUGINS": ""},
        cwd=project,
    )
    [plugin] = outcome.assert_ok().json()["plugins"]
    assert plugin["status"] == "loaded"
    assert [c["name"] for c in plugin["contributions"]] == ["two-words-free-space"]


def test_a_baked_device_is_known_to_rpl(bake, rpl_cli):
    project = bake("two-words", "device")
    outcome = rpl_cli.process(
        *("-p", "rpl_two_words.plugin", "devices", "--json"),
        env={"PYTHONPATH": str(project / "src"), "RPL_LOAD_PLUGINS": "rpl-amdgpu"},
        cwd=project,
    )
    devices = outcome.assert_ok().json()["devices"]
    assert [device["name"] for device in devices] == ["rx7800xt", "rx7700xt"]
    assert not list(project.rglob("free_space.py"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_baked_plugin_is_formatted_and_linted_and_holds_nothing_of_the_template(bake, kind):
    project = bake("two-words", kind)
    for command in (("check", "--select", "E,F,W,I,UP,B,PT,SIM"), ("format", "--check")):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "ruff",
                *command,
                "--no-cache",
                "--isolated",
                "--line-length",
                "110",
                str(project),
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=project,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    for file in project.rglob("*"):
        assert "{{" not in str(file)
        if file.is_file():
            assert "cookiecutter" not in file.read_text(encoding="utf-8")
    modules = {path.name for path in project.rglob("*.py")}
    assert {"plugin.py", "test_plugin.py"} < modules
    assert len(modules) == 4


def test_a_quote_in_a_text_breaks_nothing(bake, rpl_cli):
    said, author = r'finds "hot" loops of GPUs \ and back', 'Ada "the first" O\'Neill'
    project = bake("two-words", summary=said, author=author)
    stated = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert stated["description"] == f"rpl plugin: {said}"
    assert stated["authors"] == [{"name": author}]
    module = ast.parse((project / "src" / "rpl_two_words" / "__init__.py").read_text(encoding="utf-8"))
    assert ast.get_docstring(module) == r'Finds "hot" loops of GPUs \ and back.'


@pytest.mark.parametrize("summary", [" ", "two\nlines"])
def test_a_summary_is_one_line(bake, summary):
    with pytest.raises(FailedHookException):
        bake("two-words", summary=summary)


@pytest.mark.parametrize("name", ["core", "rpl-x", "Upper", "two words", "9lives", "x_y", "gfx942"])
def test_an_unusable_name_is_refused(bake, name):
    with pytest.raises(FailedHookException):
        bake(name)
