"""Build systems of plugins: the highest priority that answers builds; a broken one is passed over."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from rpl_core import hookimpl
from rpl_core.errors import MissingError, PluginError, UsageError
from rpl_optimize.build.builders import BuiltProgram, ProgramBuilder, choose_builder
from rpl_optimize.hookspecs import BUILDERS
from rpl_optimize.interfaces.builder import Build, Builder, BuildFailure, BuildRequest, BuildSystem

TEMPLATE = {"build_command": "true {source} {output}"}


class Copies(Builder):
    """The program is ``program`` in the directory, or the build is what the test says."""

    summary = "copies a program"

    def __init__(self, program: bytes = b"", answer: object = None) -> None:
        self._program, self._answer = program, answer

    def build(self, text: bytes, directory: Path) -> Build | BuildFailure:
        if self._answer is not None:
            return self._answer
        (directory / "made").write_bytes(self._program)
        return Build(directory / "made", (("cp",),), 0.5, directory / "log")

    def command_for(self, build: Build) -> tuple[str, ...]:
        return (str(build.binary), "7")


class Strange(BuildSystem):
    name = "strange"
    summary = "for tests"

    def __init__(self, priority: int, answer: object) -> None:
        self.priority, self._answer = priority, answer

    def builder(self, request: BuildRequest) -> Builder | None:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.fixture
def choose(tmp_path, rpl_host):
    """The choice with a stranger's build system beside the installed ones, and what the user is told."""

    def chosen(priority: int, answer: object, **options: object) -> tuple[ProgramBuilder, list[str]]:
        @hookimpl
        def rpl_builders() -> tuple[BuildSystem, ...]:
            return (Strange(priority, answer),)

        plugin = ModuleType("strangers_plugin")
        vars(plugin).update(RPL_API=2, rpl_builders=rpl_builders)
        source, notes = tmp_path / "k.hip", []
        source.touch()
        systems = rpl_host("optimize", plugin).catalog.of(BUILDERS).contributions
        request = BuildRequest(("./app",), source, tmp_path, **options)
        return choose_builder(request, systems, notes.append), notes

    return chosen


@pytest.mark.parametrize(
    ("priority", "answer", "options", "used"),
    [
        (31, Copies(), TEMPLATE, "strange"),
        (29, Copies(), TEMPLATE, "command"),
        (31, None, TEMPLATE, "command"),
        (1, Copies(), {}, "strange"),
    ],
)
def test_a_strangers_build_is_used_by_its_priority(choose, priority, answer, options, used) -> None:
    builder, notes = choose(priority, answer, **options)
    assert (builder.system, notes) == (used, [])


@pytest.mark.parametrize("answer", [ZeroDivisionError("x"), "a builder"])
def test_a_broken_build_system_costs_only_itself(choose, answer) -> None:
    builder, (note,) = choose(31, answer, **TEMPLATE)
    assert builder.system == "command"
    assert "build system strange" in note


def test_what_a_build_system_says_to_the_user_is_said(choose) -> None:
    with pytest.raises(UsageError, match="no target given"):
        choose(31, UsageError("no target given"), **TEMPLATE)


def test_no_build_system_at_all(tmp_path) -> None:
    (tmp_path / "k.hip").touch()
    with pytest.raises(MissingError, match=r"no installed plugin can build k\.hip"):
        choose_builder(BuildRequest(("./app",), Path("k.hip"), tmp_path), (), print)


def test_the_device_code_is_looked_at_for_every_builder(tmp_path) -> None:
    built = ProgramBuilder("p", "strange", Copies(b"no program")).build(b"", tmp_path)
    assert isinstance(built, BuildFailure)
    assert built.reason.startswith("the build made a program whose device code can't be read")
    assert (built.commands, built.wall_s) == ((("cp",),), 0.5)


@pytest.mark.parametrize(
    "answer", ["built", Build(Path("/bin/true"), (), 0.0, Path("log")), Build("made", (), 0.0, Path("log"))]
)
def test_what_is_no_build_is_the_fault_of_its_plugin(tmp_path, answer) -> None:
    with pytest.raises(PluginError, match="'p' failed in build by strange"):
        ProgramBuilder("p", "strange", Copies(answer=answer)).build(b"", tmp_path)


@pytest.mark.parametrize("command", [(), ("./app", 7), None])
def test_what_is_no_command_is_the_fault_of_its_plugin(tmp_path, command) -> None:
    class Odd(Copies):
        def command_for(self, build: Build) -> tuple[str, ...]:
            return command

    program = BuiltProgram(
        binary=tmp_path / "made",
        commands=(),
        wall_s=0.0,
        log=tmp_path / "log",
        binary_sha256="",
        code_sha256="",
        code_objects=(),
    )
    with pytest.raises(PluginError, match="command of strange"):
        ProgramBuilder("p", "strange", Odd()).command_for(program)
