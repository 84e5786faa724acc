"""Which build of a project makes the program: drawn trees, against what the page on optimizing promises.

Nothing is built. CMake's files are written by cmake-file-api(7) and its cache's format; which rule of a
makefile makes the program is asked of GNU make itself; the rest is walked over the places that were drawn.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path

import pytest

from rpl_core.errors import UsageError
from rpl_optimize.build.project_systems import CMakeBuilds, MakeBuilds, NinjaBuilds, SetupBuilds
from rpl_optimize.interfaces.builder import BuildRequest
from rpl_optimize.running.program_word import why_no_mounts

#: Build directories, and how deep below the tree: one that nothing names is looked for three folders deep.
PLACES = {"": 0, "build": 1, "build/release": 2, "out/b/x": 3, "deep/a/b/c": 4, "src/build": 2}
PROGRAMS = ("app", "build/app", "build/release/bin/app", "deep/a/b/c/app", "src/build/libapp.so")


@pytest.fixture
def tools(tmp_path, monkeypatch):
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("cmake", "ninja", "make", "python3.11"):
        (folder / name).write_text("#!/bin/sh\nexit 1\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    if why_no_mounts() is not None:
        pytest.skip("this machine mounts nothing for a command")


def tree(folder: Path) -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / "src").mkdir()
    (folder / "src" / "k.hip").touch()
    return folder.resolve()


def request_for(root: Path, program: str, *words: str) -> BuildRequest:
    path = root / program
    path.parent.mkdir(parents=True, exist_ok=True)
    return BuildRequest((str(path), *words), root / "src" / "k.hip", root)


def configured(directory: Path, home: Path | None) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    line = f"CMAKE_HOME_DIRECTORY:INTERNAL={home}\n" if home is not None else "CMAKE_HOME_DIRECTORY\n"
    (directory / "CMakeCache.txt").write_text(
        f"# This is the CMakeCache file.\nFOO:BOOL=ON\n{line}B:PATH=/x\n"
    )


def answered(directory: Path, targets: dict[str, list[str]], configurations: tuple[str, ...] = ("",)) -> None:
    """What the file API answers of ``targets`` with their artifacts; an older answer says otherwise."""
    reply = directory / ".cmake" / "api" / "v1" / "reply"
    reply.mkdir(parents=True)
    listed = []
    for configuration in configurations:
        for name, artifacts in targets.items():
            target = {"name": name, "type": "EXECUTABLE" if artifacts else "UTILITY"}
            if artifacts:
                target["artifacts"] = [{"path": f"{configuration}{path}"} for path in artifacts]
            (reply / f"target-{name}-{configuration.strip('/')}.json").write_text(json.dumps(target))
        files = [{"name": n, "jsonFile": f"target-{n}-{configuration.strip('/')}.json"} for n in targets]
        listed.append({"name": configuration.strip("/"), "targets": files})
    (reply / "codemodel-v2-1.json").write_text(json.dumps({"configurations": listed}))
    (reply / "codemodel-v2-0.json").write_text(json.dumps({"configurations": [{"name": "", "targets": []}]}))
    cache = {"kind": "cache", "jsonFile": "cache.json"}
    for time, model in (("2026-01-01T00", "0"), ("2026-01-02T00", "1")):
        objects = [cache, {"kind": "codemodel", "jsonFile": f"codemodel-v2-{model}.json"}]
        (reply / f"index-{time}.json").write_text(json.dumps({"objects": objects}))


def expected_directory(drawn: dict[str, str], program: str) -> str | None:
    """The place whose build makes the program, ``None``, or "several"."""
    above = [place for place in drawn if not place or program.startswith(f"{place}/")]
    if above:
        nearest = max(above, key=lambda place: PLACES[place])
        return nearest if drawn[nearest] in ("silent", "makes", "others") else None
    seen = [
        place
        for place in sorted(drawn)
        if PLACES[place] <= 3 and not any(o != place and (not o or place.startswith(f"{o}/")) for o in drawn)
    ]
    fitting = [p for p in seen if drawn[p] == "makes"] or [p for p in seen if drawn[p] == "silent"]
    return "several" if len(fitting) > 1 else next(iter(fitting), None)


@pytest.mark.usefixtures("tools")
def test_the_directory_of_cmake_that_makes_the_program(tmp_path):
    rng, seen = random.Random(8), set()
    for number in range(150):
        root = tree(tmp_path / str(number))
        (root / "other").mkdir()
        program = rng.choice(PROGRAMS)
        states = ("silent", "makes", "others", "elsewhere", "damaged", "moved")
        chances = rng.choices(states, (3, 3, 2, 1, 1, 1), k=len(PLACES))
        drawn = {p: s for p, s in zip(PLACES, chances, strict=True) if rng.random() < (0.4 if p else 0.05)}
        for place, state in drawn.items():
            home = {"elsewhere": root / "other", "damaged": None, "moved": root / "gone"}.get(state, root)
            configured(root / place, home)
            if state in ("makes", "others"):
                made = str(root / program) if state == "makes" else "x/another"
                answered(root / place, {"all_of_it": [], "lib": ["lib.a"], "it": ["it.map", made]})
        expected = expected_directory(drawn, program)
        seen.add((expected in (None, "several") and expected, drawn.get(expected or "")))
        said = f"{program} of {drawn}"
        if expected == "several":
            with pytest.raises(UsageError, match="several build directories of CMake may make"):
                CMakeBuilds().builder(request_for(root, program))
            continue
        builder = CMakeBuilds().builder(request_for(root, program))
        assert (builder is None) == (expected is None), said
        if builder is not None:
            target = ("--target", "it") if drawn[expected] == "makes" else ()
            assert builder.words == ("cmake", "--build", str(root / expected), *target, "--verbose"), said
            assert (builder.root, builder.place) == (root, root / expected), said
    assert {("several", None), (False, "makes"), (False, "silent"), (None, None)} <= seen


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(
    ("program", "listed", "target"),
    [
        ("app", ("app", "other"), "app"),
        ("app.exe", ("app", "other"), "app"),
        ("libapp.so", ("app", "other"), "app"),
        ("libapp.so.1", ("libapp", "other"), "libapp"),
        ("app", ("application", "other"), None),
        ("app", (), None),
    ],
)
def test_without_the_file_api_the_target_of_its_name_is_built(tmp_path, program, listed, target):
    root = tree(tmp_path / "p")
    configured(root / "build", root)
    entries = [
        {
            "directory": str(root / "build"),
            "file": str(root / "src" / "k.hip"),
            "command": f"c++ -o CMakeFiles/{name}.dir/src/k.hip.o -c {root}/src/k.hip",
            "output": f"CMakeFiles/{name}.dir/src/k.hip.o",
        }
        for name in listed
    ]
    (root / "build" / "compile_commands.json").write_text(json.dumps(entries))
    builder = CMakeBuilds().builder(request_for(root, f"build/{program}"))
    chosen = () if target is None else ("--target", target)
    assert builder.words == ("cmake", "--build", str(root / "build"), *chosen, "--verbose")


@pytest.mark.usefixtures("tools")
def test_of_several_configurations_the_one_with_the_program_is_built(tmp_path):
    root = tree(tmp_path / "p")
    configured(root / "build", root)
    answered(root / "build", {"app": ["app"], "app2": ["app2"]}, ("Debug/", "Release/"))
    for configuration, name in (("Debug", "app"), ("Release", "app"), ("Release", "app2")):
        builder = CMakeBuilds().builder(request_for(root, f"build/{configuration}/{name}"))
        assert builder.words[3:-1] == ("--target", name, "--config", configuration)


@pytest.mark.usefixtures("tools")
def test_ninja_and_setup_where_they_are_left(tmp_path):
    """Every set of files: who answers, and in which folder."""
    for number in range(64):
        root = tree(tmp_path / str(number))
        has = [bool(number >> bit & 1) for bit in range(6)]
        program = "src/ext/out/app.so" if has[4] else "src/ext/out/app"
        if has[5]:
            program = program.replace("src/ext/out", "src/build/lib")
        (root / "src" / "ext" / "out").mkdir(parents=True)
        (root / "src" / "build" / "lib").mkdir(parents=True)
        beside = root / Path(program).parent
        for there, path in (
            (has[0], beside / "build.ninja"),
            (has[1], beside.parent / "build.ninja"),
            (has[2], beside.parent / "CMakeCache.txt"),
            (has[3], root / "src" / "setup.py"),
        ):
            if there:
                path.touch()
        request = request_for(root, program)
        ninja = NinjaBuilds().builder(request)
        folder = beside if has[0] else beside.parent if has[1] and not has[2] else None
        assert (None if ninja is None else (ninja.words, ninja.place)) == (
            None if folder is None else (("ninja", "--verbose"), folder)
        )
        for first, python in (
            ("python3.11", "python3.11"),
            ("python", "python"),
            (str(root / program), "python3"),
        ):
            words = (first, "run.py") if first != str(root / program) else (first,)
            request = BuildRequest(words, root / "src" / "k.hip", root, binary=root / program)
            if first == "python":
                (tmp_path / "tools" / "python").write_bytes((tmp_path / "tools" / "make").read_bytes())
                (tmp_path / "tools" / "python").chmod(0o755)
            (root / program).touch()
            setup = SetupBuilds().builder(request)
            beside_it = () if has[5] else ("--inplace",)
            expected = (
                ((python, "setup.py", "build_ext", *beside_it), root / "src") if has[3] and has[4] else None
            )
            assert (None if setup is None else (setup.words, setup.place)) == expected


LINES = (
    "app: a.o",
    "./app: a.o",
    "app other: a.o",
    "other app : a.o",
    "app := 3",
    "app = x: y",
    "# app: a.o",
    "all: app",
    "bin/app: a.o",
    "OUT = app\n$(OUT): a.o",
    "app.o: a.c",
    "my-app: a.o",
    "\t@echo app: a",
    "x: ; echo app",
)


def rules_of(make: Path, makefile: Path) -> set[str]:
    """The targets for which a rule is written, by make's own print of what it read."""
    command = [str(make), "-pRrqn", "-f", str(makefile), "nothing_at_all"]
    printed = subprocess.run(command, cwd=makefile.parent, capture_output=True, text=True, check=False).stdout
    files = printed.partition("\n# Files\n")[2]
    blocks = [block for block in files.split("\n\n") if "# Not a target:" not in block]
    return {match[1] for block in blocks if (match := re.search(r"^([^#\s:][^:]*):", block, re.MULTILINE))}


def test_the_rule_of_a_makefile(tmp_path, rpl_require):
    make, rng, known = rpl_require("make"), random.Random(3), set()
    for number in range(60):
        root = tree(tmp_path / str(number))
        lines = rng.sample(LINES, rng.randint(1, 3))
        if lines[0].startswith("\t"):
            lines.insert(0, "first: a.o")
        program = rng.choice(("app", "app", "bin/app"))
        name = rng.choice(("GNUmakefile", "makefile", "Makefile"))
        (root / name).write_text("\n".join(lines) + "\n")
        if name != "Makefile":
            (root / "Makefile").write_text("all: nothing\n")  # make takes the other one
        builder = MakeBuilds().builder(request_for(root, program))
        named = any(re.search(r"(^|[^\w.+-])app($|[^\w.+-])", line) for line in lines)
        assert (builder is not None) == named, lines
        if builder is None:
            continue
        assert (builder.words[0], builder.place) == ("make", root)
        rules = rules_of(make, root / name)
        # One whose name stands in full; those in variables and patterns are left to make itself.
        written = [one for one in (program, f"./{program}") if one in rules]
        if "OUT = app\n$(OUT): a.o" not in lines:
            # make knows ./app as app; which of both is written, the text tells.
            assert bool(builder.words[1:]) == bool(written), (lines, rules)
        if builder.words[1:]:
            assert builder.words[1].removeprefix("./") == program
            assert {program, f"./{program}"} & rules, lines
        known.add((bool(written), builder.words[1:]))
    assert {(True, ("app",)), (True, ("./app",)), (True, ("bin/app",)), (False, ())} <= known


def test_the_nearest_makefile_that_names_it_counts(tmp_path, rpl_require):
    """Every set of folders that name it: the user's, the root, the program's, the source's."""
    rpl_require("make")
    folders = ("", "bin", "src", "work")
    for number in range(16):
        root = tree(tmp_path / str(number))
        (root / "work").mkdir()
        (root / "bin").mkdir()
        making = [folder for bit, folder in enumerate(folders) if number >> bit & 1]
        for folder in making:
            (root / folder / "Makefile").write_text("all:\n\techo app\n")
        for place in ("", "work"):
            request = BuildRequest((str(root / "bin" / "app"),), root / "src" / "k.hip", root / place)
            # What neither the user stands in nor lies above program or source is not asked.
            asked = [folder for folder in making if folder != "work" or place == "work"]
            if place in asked or len(asked) == 1:
                builder = MakeBuilds().builder(request)
                assert builder.place == root / (place if place in asked else asked[0])
                assert builder.words == ("make",)
            elif asked:
                with pytest.raises(UsageError, match="makefiles of several directories name app"):
                    MakeBuilds().builder(request)
            else:
                assert MakeBuilds().builder(request) is None
