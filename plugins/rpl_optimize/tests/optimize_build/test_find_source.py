"""Which file holds the kernels: named, in the debug information, or in the compile database."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from rpl_core.errors import UsageError
from rpl_optimize.build.project_systems import defines_kernels, find_source

pytestmark = pytest.mark.clang
_SECOND = "#include <hip/hip_runtime.h>\n__global__ void other(int* out) { out[0] = 1; }\n"


@pytest.fixture
def app(hipcc, project):
    """``app("-g", "src/a.hip")``: builds ./app from these sources (default: all)."""

    def build(*flags: str, sources: tuple[str, ...] = ("src/scale.hip", "src/main.cpp")) -> tuple[str, ...]:
        command = [hipcc, "-O1", *flags, *sources, "-o", "app"]
        subprocess.run(command, cwd=project.root, check=True, capture_output=True)
        return ("./app", "in.txt")

    return build


def test_debug_information_names_the_file_of_the_kernels(app, project):
    found = find_source(app("-g"))
    assert found.path == project.source
    assert found.how == "device debug information of app"


def test_what_is_named_wins(app, project):
    (project.root / "mine.hip").write_text("")
    found = find_source(app("-g"), source=Path("mine.hip"))
    assert (found.path, found.how) == (project.root / "mine.hip", "--source")
    with pytest.raises(UsageError, match="no source file at absent"):
        find_source(("./app",), source=Path("absent"))


def test_kernels_in_several_files_are_ambiguous_and_listed(app, project):
    (project.root / "src" / "second.hip").write_text(_SECOND)
    command = app("-g", sources=("src/scale.hip", "src/second.hip", "src/main.cpp"))
    with pytest.raises(UsageError, match=r"scale\.hip, .*second\.hip") as caught:
        find_source(command)
    assert "--source" in caught.value.one_line()


def test_without_debug_information_the_compile_database_decides(app, project):
    command = app()
    project.write_database(project.root / "build" / "compile_commands.json")
    found = find_source(command)
    assert (found.path, found.how) == (project.source, str(project.root / "build" / "compile_commands.json"))


def test_several_files_with_kernels_in_the_database_are_ambiguous(app, project):
    (project.root / "src" / "second.hip").write_text(_SECOND)
    path = project.write_database(project.root / "compile_commands.json")
    entry = {"directory": str(project.root), "file": "src/second.hip", "command": "hipcc -c src/second.hip"}
    path.write_text(json.dumps([*json.loads(path.read_text()), entry]))
    with pytest.raises(UsageError, match="several files define kernels"):
        find_source(app(), compile_database=path)


def test_nothing_found_says_what_was_looked_at_and_what_to_pass(app, project):
    command = app("-g")
    project.source.rename(project.root / "src" / "moved.hip")
    with pytest.raises(UsageError, match="was not found") as caught:
        find_source(command)
    line = caught.value.one_line()
    for part in ("scale.hip", "no compile_commands.json", "--source", "-g", "--compile-database"):
        assert part in line


def test_a_program_that_was_never_built_still_asks_the_database(project):
    path = project.write_database(project.root / "compile_commands.json")
    assert find_source(("./app",), compile_database=path).path == project.source


def test_only_regular_files_with_kernels_outside_of_comments_count(tmp_path):
    import os

    texts = {
        "yes": "/* text */ template <class T>\n__global__ void k(T*) {}",
        "line": "// __global__ void k();",
        "block": "/* __global__\nvoid k(); */ int x;",
        "open": "/* __global__ void k();",
        "part": "int my__global__x;",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    found = [path.name for path in sorted(tmp_path.iterdir()) if defines_kernels(path)]
    assert found == ["yes"]
    assert not defines_kernels(Path("a\0b"))
    (tmp_path / "long").write_text("/*" * 4_000_000)
    assert not defines_kernels(tmp_path / "long"), "and it takes no quadratic time"
