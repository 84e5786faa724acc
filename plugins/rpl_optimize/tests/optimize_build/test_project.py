"""``--build 'make app'``: the project's own build, in a copy of its tree."""

from __future__ import annotations

import os
import subprocess

import pytest

from rpl_core.errors import UsageError
from rpl_optimize.build import project_build
from rpl_optimize.build.builders import BuiltProgram
from rpl_optimize.build.project_build import ProjectBuilder
from rpl_optimize.interfaces.builder import BuildFailure
from rpl_optimize.running.sandbox import find_sandbox

pytestmark = pytest.mark.clang
_CHANGED = (b"FACTOR + LOCAL", b"FACTOR + LOCAL + 10")


def changed(project) -> bytes:
    return project.source.read_bytes().replace(*_CHANGED)


@pytest.fixture
def only_copied(monkeypatch):
    """A machine on which nothing can be mounted: the build sees the copy at its own place."""
    monkeypatch.setattr(project_build, "why_no_mounts", lambda: "it is not allowed")


@pytest.fixture
def make(rpl_require):
    return str(rpl_require("make"))


def test_make_runs_in_a_copy_and_the_tree_stays_as_it_was(hipcc, make, project, build_ok):
    before = project.hash
    builder = project.builder(build_command="make app")
    assert isinstance(builder.builder, ProjectBuilder)
    build = build_ok(builder, changed(project))
    assert project.printed((str(build.binary),)) == "13"
    assert builder.command_for(build) == (str(build.binary), "in.txt")
    assert project.hash == before


def test_only_what_depends_on_the_source_is_built_anew(hipcc, make, project, build_ok):
    subprocess.run([make, "app"], cwd=project.root, check=True, capture_output=True)
    before = project.hash
    build = build_ok(project.builder(build_command="make app"), changed(project))
    assert project.printed((str(build.binary),)) == "13"
    log = build.log.read_text()
    assert "-c -O1 -DUNUSED=1 src/scale.hip" in log
    assert "src/main.cpp" not in log
    assert project.hash == before


def test_a_program_that_the_build_does_not_write_is_a_failure(hipcc, project, built):
    (project.root / "app").write_text("of an earlier build")
    failure = built(project.builder(build_command="true"), changed(project))
    assert failure.reason == "the build command ended well, but did not make app"


def test_the_projects_own_path_in_words_and_variables_leads_to_the_copy(
    hipcc, make, project, build_ok, monkeypatch, only_copied
):
    monkeypatch.setenv("APP_ROOT", str(project.root))
    monkeypatch.setenv("APP_ROOTS", f"{project.root}-other:{project.root}/src")
    before = project.hash
    words = f"sh -c 'echo $APP_ROOT $APP_ROOTS; exec make -C {project.root} app'"
    build = build_ok(project.builder(build_command=words), changed(project))
    copy = build.binary.parent
    assert f"{copy} {project.root}-other:{copy}/src" in build.log.read_text()
    assert project.printed((str(build.binary),)) == "13"
    assert project.hash == before


@pytest.mark.parametrize("sandbox", ["off", "on"])
def test_a_build_that_reaches_back_is_found_out(only_copied, project, built, monkeypatch, sandbox):
    monkeypatch.setenv("RPL_SANDBOX", sandbox)
    (project.root / "sub").mkdir()
    (project.root / "sub" / "build.sh").write_text(f"echo x >> $(echo {project.root})/trace.txt; exit 3\n")
    # The path inside of a script can not be led elsewhere.
    failure = built(project.builder(build_command="sh sub/build.sh"), b"")
    if sandbox == "off" or find_sandbox().kind is None:
        assert failure.reason.startswith("trace.txt changed in your own tree")
    else:
        assert not (project.root / "trace.txt").exists()
        assert "trace.txt" in failure.reason


def test_what_does_not_belong_into_a_copy_is_left_out(only_copied, project, built):
    root = project.root
    for name, mark in (
        (".git", "HEAD"),
        ("cmake-build", "CMakeCache.txt"),
        ("runs/one", "run.json"),
        ("runs/two", "ledger.jsonl"),
    ):
        (root / name).mkdir(parents=True)
        (root / name / mark).write_text("{}")
        (root / name / "large").write_text("")
    os.mkfifo(root / "pipe")
    (root / "inside").symlink_to("src/local.h")
    (root / "absolute").symlink_to(root / "src" / "local.h")
    (root / "outside").symlink_to("../elsewhere")
    before = project.hash
    failure = built(project.builder(build_command="find . -print"), b"candidate")
    listed = set(failure.log.read_text().splitlines())
    assert {"./src/scale.hip", "./runs", "./in.txt", "./inside"} <= listed
    assert not listed & {"./.git", "./cmake-build", "./runs/one", "./runs/two", "./pipe"}
    copy = failure.log.parent / "project"
    assert str((copy / "inside").readlink()) == "src/local.h"
    assert str((copy / "absolute").readlink()) == str(copy / "src" / "local.h")
    assert str((copy / "outside").readlink()) == str(root.parent / "elsewhere")
    assert (copy / "src" / "scale.hip").read_bytes() == b"candidate"
    assert project.hash == before


def test_a_source_behind_a_link_is_replaced_without_writing_through_it(project, built):
    (project.root / "alias.hip").symlink_to("src/scale.hip")
    before = project.hash
    failure = built(
        project.builder(build_command="cat alias.hip", source=project.root / "alias.hip"), b"candidate"
    )
    assert "candidate" in failure.log.read_text()
    assert project.hash == before


def test_a_scratch_directory_inside_the_project_is_not_copied_into_itself(project):
    builder = project.builder(build_command="find . -name scale.hip")
    for number in range(2):
        failure = builder.build(b"", project.root / "session" / str(number))
        assert isinstance(failure, BuildFailure)
        assert failure.log is not None
        assert failure.log.read_text().count("scale.hip\n") == 2, "in the command line and once in the copy"


def test_a_tree_that_is_too_large_is_refused_with_a_way_out(project, built, monkeypatch):
    monkeypatch.setattr(project_build, "MAX_FILES", 3)
    with pytest.raises(UsageError, match="more than 3 files") as caught:
        built(project.builder(build_command="true"), b"")
    assert "--project" in caught.value.one_line()


def test_the_git_root_is_the_project_and_its_subdirectory_keeps_its_counterpart(
    only_copied, project, built, monkeypatch
):
    (project.root / ".git").mkdir()
    monkeypatch.chdir(project.root / "src")
    builder = project.builder(build_command="sh -c 'pwd; echo $PWD'", command=("../app",))
    failure = built(builder, b"")
    copy = failure.log.parent / "project" / "src"
    assert failure.log.read_text().splitlines()[1:3] == [str(copy), str(copy)]


def test_source_program_and_working_directory_must_lie_in_the_project(project, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="the program that is built"):
        project.builder(build_command="make app", command=("/bin/absent",), project=project.root)
    with pytest.raises(UsageError, match=r"the source, .*is not inside"):
        project.builder(build_command="make app", project=project.root / "include")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="the working directory"):
        project.builder(build_command="make", command=(str(project.root / "app"),), project=project.root)


def test_a_cmake_build_in_the_source_directory_is_refused(only_copied, project):
    (project.root / "CMakeCache.txt").write_text("")
    with pytest.raises(UsageError, match="CMake was configured inside"):
        project.builder(build_command="make app", project=project.root)


def test_cmake_configures_a_build_directory_of_the_copy(only_copied, hipcc, project, build_ok, rpl_require):
    rpl_require("cmake")
    text = "cmake_minimum_required(VERSION 3.16)\nproject(app LANGUAGES CXX)\n"
    text += "add_custom_target(app ALL COMMAND hipcc ${CMAKE_SOURCE_DIR}/src/scale.hip "
    text += "${CMAKE_SOURCE_DIR}/src/main.cpp -o app)\n"
    (project.root / "CMakeLists.txt").write_text(text)
    configure = ["cmake", "-S", ".", "-B", "build"]
    subprocess.run(configure, cwd=project.root, check=True, capture_output=True)
    (project.root / "build" / "app").write_text("")
    before = project.hash
    ways = {"cmake --build build": False, "sh -c 'cmake -S . -B build && cmake --build build'": True}
    for template, works in ways.items():
        builder = project.builder(
            build_command=template, command=("build/app",), project=project.root, time_limit_s=120
        )
        build = builder.build(changed(project), project.root.parent / f"scratch-{works}")
        assert isinstance(build, BuiltProgram) is works
        if isinstance(build, BuiltProgram):
            assert project.printed((str(build.binary),)) == "13"
    assert project.hash == before
