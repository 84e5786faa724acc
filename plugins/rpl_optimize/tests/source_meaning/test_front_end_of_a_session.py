"""The compiler and options that edits of a session are read with."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from rpl_optimize.interfaces.builder import BuildRequest, Compilation
from rpl_optimize.loop.meaning import _front_end


@pytest.fixture
def project(tmp_path):
    for name, text in (("k.h", "__global__ void k();"), ("a.hip", "int a;"), ("b.hip", '#include "inc/k.h"')):
        (tmp_path / name).write_text(text)
    return tmp_path


def _found(project, name, *commands, seen=(), **changes):
    request = BuildRequest(("./app",), project / name, project, **changes)
    build = SimpleNamespace(commands=commands, compilations=seen)
    return _front_end(request, SimpleNamespace(build=build))


def _database(project) -> None:
    entries = [
        {"file": f"../{name}", "directory": str(project / "build"), "command": f"hipcc -I ../x -c ../{name}"}
        for name in ("a.hip", "b.hip")
    ]
    (project / "build").mkdir()
    (project / "build" / "compile_commands.json").write_text(json.dumps(entries))


def test_a_header_is_read_through_a_source_that_includes_it(project):
    found = _found(project, "k.h", ("hipcc", "-O2", "-c", "b.hip", "-o", "b.o"))
    assert (found.words, found.unit, found.source) == (("hipcc", "-O2"), project / "b.hip", project / "k.h")
    (project / "b.hip").write_text("int b;")
    assert _found(project, "k.h") == "no source was found that includes k.h"


def test_a_compile_database_names_options_and_directory(project):
    _database(project)
    found = _found(project, "k.h", ("make", "app"))
    assert (found.words, found.unit) == (("hipcc", "-I", "../x"), project / "b.hip")
    assert found.directory == project / "build"
    given = _found(project, "a.hip", ("cc", "-O1", "s/a.hip"), build_command="cc -O1 {source} -o {output}")
    assert (given.words, given.directory) == (("cc", "-O1"), project), "what was said goes before"


def test_without_a_command_for_the_file_the_installed_compiler_reads_it(project, monkeypatch):
    """``make app`` does not show how it compiles."""
    compiler = project / "hipcc"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(project))
    found = _found(project, "a.hip", ("make", "app"), architecture="gfx942")
    assert (found.words[:2], found.unit) == (("hipcc", "-O3"), project / "a.hip")
    assert "--offload-arch=gfx942" in found.words
    assert project in found.readable


def test_what_a_build_was_seen_to_run_goes_before_a_database(project):
    _database(project)
    others = Compilation(("clang++", "-c", "../other/b.hip"), project / "sub")
    seen = (others, Compilation(("clang++", "-I..", "-c", "../b.hip", "-o", "b.o"), project / "sub"))
    found = _found(project, "k.h", ("make", "app"), seen=seen)
    assert (found.words, found.directory) == (("clang++", "-I.."), project / "sub")
    assert _found(project, "k.h", ("make", "app"), seen=(others,)).words == ("hipcc", "-I", "../x")
