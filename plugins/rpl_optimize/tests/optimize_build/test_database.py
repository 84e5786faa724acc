"""A compile database: the candidate with its entry's compiler and flags, all other files once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_optimize.build.builders import BuiltProgram
from rpl_optimize.build.compile_database import compile_command, link_command, read_database
from rpl_optimize.build.systems import DatabaseBuilder

pytestmark = pytest.mark.clang


def changed(project, by: bytes = b"10") -> bytes:
    return project.source.read_bytes().replace(b"FACTOR + LOCAL", b"FACTOR + LOCAL + " + by)


@pytest.mark.parametrize("listed", [False, True])
def test_the_program_is_linked_from_the_candidate_and_the_others(hipcc, project, build_ok, listed):
    project.write_database(project.root / "build" / "compile_commands.json", listed=listed)
    before = project.hash
    builder = project.builder()
    assert isinstance(builder.builder, DatabaseBuilder), "found without being named"
    build = build_ok(builder, changed(project))
    assert project.printed((str(build.binary),)) == "13"
    assert builder.command_for(build) == (str(build.binary), "in.txt")
    assert project.hash == before, "neither objects nor dependency files"


def test_other_files_are_compiled_once(hipcc, project, build_ok):
    project.write_database(project.root / "compile_commands.json")
    builder = project.builder()
    first, second = (build_ok(builder, changed(project, by)) for by in (b"10", b"20"))
    assert [sum("main.cpp" in " ".join(c) for c in b.commands) for b in (first, second)] == [1, 0]
    assert project.printed((str(second.binary),)) == "23"
    known = next(word for word in second.commands[-1] if word.endswith("-main.o"))
    Path(known).write_bytes(b"damaged")
    third = build_ok(builder, changed(project, b"30"))
    assert project.printed((str(third.binary),)) == "33"


@pytest.mark.long
@pytest.mark.long
def test_an_object_with_the_main_of_another_program_is_left_out(hipcc, project, build_ok, built):
    for name in ("test.cpp", "bench.cpp"):
        (project.root / "src" / name).write_text("int main() { return 9; }\n")
    database = project.write_database(project.root / "compile_commands.json")
    entries = json.loads(database.read_text())
    for target, name in (("test", "test.cpp"), ("bench", "bench.cpp")):
        entry = {"directory": str(project.root), "file": f"src/{name}", "command": f"hipcc -c src/{name}"}
        entries.append({**entry, "output": f"CMakeFiles/{target}.dir/src/{name}.o"})
    database.write_text(json.dumps(entries))
    failure = built(project.builder(), changed(project))
    assert "several programs" in failure.reason
    assert "--build" in failure.reason
    entries[1]["output"] = "CMakeFiles/app.dir/src/main.cpp.o"
    database.write_text(json.dumps(entries))
    assert project.printed((str(build_ok(project.builder(), changed(project)).binary),)) == "13"
    # A candidate with its own main needs none of the others.
    whole = project.whole.replace(b"FACTOR + LOCAL", b"FACTOR + LOCAL + 4")
    assert project.printed((str(build_ok(project.builder(), whole).binary),)) == "7"


def test_a_database_without_the_source_is_passed_over_unless_it_was_named(hipcc, project):
    path = project.write_database(project.root / "compile_commands.json")
    path.write_text(json.dumps(json.loads(path.read_text())[1:]))
    assert not isinstance(project.builder().builder, DatabaseBuilder)
    with pytest.raises(UsageError, match="no entry for") as caught:
        project.builder(compile_database=path)
    assert "--build" in caught.value.one_line()


def test_flags_that_write_other_files_are_dropped_and_the_rest_kept(project):
    words = "ccache /opt/x/clang++ -x hip --offload-arch=gfx942 -MD -MF a.d -MTb -MP -save-temps=obj "
    words += (
        "-Wp,-MMD,c.d -DA='\"x y\"' -fgpu-rdc --sysroot /s -O2 -Iinclude -oold.o --serialize-diagnostics d "
    )
    words += "-c -- ./src/../src/scale.hip"
    value = [{"directory": str(project.root), "file": "src/scale.hip", "command": words}]
    path = project.root / "compile_commands.json"
    path.write_text(json.dumps(value))
    (entry,) = read_database(path)
    compiled = compile_command(entry, Path("/n/scale.hip"), Path("/n/a.o"), beside=Path("/src"))
    kept = (
        "-x",
        "hip",
        "--offload-arch=gfx942",
        '-DA="x y"',
        "-fgpu-rdc",
        "--sysroot",
        "/s",
        "-O2",
        "-Iinclude",
    )
    own = ("-iquote", "/src", "-c", "/n/scale.hip", "-o", "/n/a.o")
    assert compiled == ("/opt/x/clang++", *kept, *own)
    linked = link_command(entry, [Path("/n/a.o")], Path("/n/app"), ("-lm",))
    carried = ("--offload-arch=gfx942", "-fgpu-rdc", "--sysroot", "/s", "-O2")
    assert linked == ("/opt/x/clang++", *carried, "--hip-link", "/n/a.o", "-o", "/n/app", "-lm")


def test_a_shell_in_a_command_is_never_run(hipcc, project, built):
    path = project.write_database(
        project.root / "compile_commands.json", flags="-O1 $(touch,hit) ;touch hit2"
    )
    built(project.builder(compile_database=path), changed(project))
    assert not (project.root / "hit").exists()
    assert not (project.root / "hit2").exists()


def test_a_program_of_the_database_that_is_missing_is_named(project):
    path = project.write_database(project.root / "compile_commands.json")
    path.write_text(path.read_text().replace("hipcc", "./no-such-compiler"))
    with pytest.raises(MissingError, match="no-such-compiler"):
        project.builder()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not valid JSON"),
        ("{}", "is a list"),
        ("[3]", "entry 0: not an object"),
        ('[{"directory": "/"}]', "command is None"),
        ('[{"directory": "/", "file": "a\\u0000", "command": "c"}]', "file is"),
        ('[{"directory": "/", "file": "a", "command": "c \'"}]', "can't be split"),
        ('[{"directory": "/", "file": "a", "arguments": []}]', "no command"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_broken_databases_end_in_one_clear_line(tmp_path, text, said):
    path = tmp_path / "compile_commands.json"
    path.write_text(text)
    with pytest.raises(BadDataError, match=said):
        read_database(path)


def test_a_missing_database_says_how_to_make_one(tmp_path):
    with pytest.raises(MissingError, match="no compile database") as caught:
        read_database(tmp_path)
    assert "CMAKE_EXPORT_COMPILE_COMMANDS" in caught.value.one_line()


@pytest.mark.long
def test_files_that_include_a_header_are_compiled_with_the_candidate_in_its_place(
    hipcc, project, built, tmp_path
):
    database = project.write_database(project.root / "compile_commands.json")
    header, before = project.root / "src" / "local.h", project.hash
    builder = project.builder(source=header, compile_database=database)
    original = header.read_bytes()
    for name, text, passed in (
        ("same", original.replace(b"1.0f", b"11.0f"), True),
        ("more", original.replace(b"1.0f", b"11.0f") + b"inline int unused;\nint host = 1;\n", False),
    ):
        build = builder.build(text, tmp_path / name, original)
        assert isinstance(build, BuiltProgram), build
        assert project.printed((str(build.binary),)) == "13", "device code of the candidate"
        assert build.host_code.passed is passed, build.host_code
        assert project.hash == before
    assert not any("main.cpp" in word for command in build.commands for word in command), (
        "it was compiled once"
    )
    database.write_text(json.dumps(json.loads(database.read_text())[1:]))
    failure = built(project.builder(source=header, compile_database=database), original)
    assert failure.reason == "no file of the compile database includes local.h"
