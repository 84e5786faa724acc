"""Which word of a command is the program, and which file holds its kernels, for arrangements of few files.

By "What holds the kernels" of the page on optimizing. Which file holds what is told, not read, so that each
answer follows from the arrangement alone.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from rpl_core.errors import MissingError, UsageError
from rpl_optimize.running import program_word
from rpl_optimize.running.program_word import Launches, choose_file, find_program, mapped_files, names_program

CONTENT = {"elf": b"\x7fELF\x02", "script": b"#!/bin/sh\n", "objects": b"\0\0\0\0"}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(program_word, "why_no_mounts", lambda: None)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


@pytest.mark.parametrize("kind", [*CONTENT, None])
@pytest.mark.parametrize("first", ["./first", "first", "../{}/first"])
def test_the_word_with_device_code_is_the_program(place, kind, first):
    """``first`` alone is looked up as a shell does it."""
    word = first.format(place.name)
    path = place / "bin" / "first" if first == "first" else place / "first"
    if kind is not None:
        path.write_bytes(CONTENT[kind])
        path.chmod(0o755)
    elif first == "first":
        path = place / "first"  # not found: where it will be built
    for name in ("a", "b"):
        (place / name).touch()
    for held in itertools.product((False, True), repeat=3):
        holding = {one for one, holds in zip((path, place / "a", place / "b"), held, strict=True) if holds}
        command = (word, "--n", "./a", "7", "b", "a")
        others = [one for one in (place / "a", place / "b") if one in holding]

        def holds(one, holding=holding):
            return Path(re.sub(r"/\.\./[^/]+/", "/", str(one))) in holding

        names = kind in (None, "objects") or path in holding or bool(others)
        if kind is not None and path not in holding and len(others) > 1:
            with pytest.raises(UsageError, match=r"several words of the command hold device code: .*a, .*b$"):
                find_program(command, None, place, holds)
        elif not names:
            with pytest.raises(UsageError, match="holds no device code, so it is not what is built"):
                find_program(command, None, place, holds)
        else:
            found = find_program(command, None, place, holds)
            only = others[0] if others and kind is not None and path not in holding else path
            words = {path: (0,), place / "a": (2, 5), place / "b": (4,)}[only]
            assert (found.path, found.words) == (only, words), (kind, held)
            built = found.replaced(command, place / "built")
            assert built == tuple(str(place / "built") if i in words else w for i, w in enumerate(command))
        assert names_program(command, place, holds) == names


def test_a_named_file_is_meant_whatever_holds_code(place, monkeypatch):
    (place / "run.sh").write_bytes(CONTENT["script"])
    (place / "lib.so").touch()
    (place / "link").symlink_to("lib.so")
    inside = place / "work"
    inside.mkdir()
    for command, words in (
        (("./run.sh", "lib.so"), (1,)),
        (("./run.sh", str(place / "lib.so"), "./work/../link"), (1, 2)),
        (("./lib.so",), (0,)),
        (("./run.sh", "work"), ()),
        (("./run.sh", ""), ()),
    ):
        found = find_program(command, Path("lib.so"), place)
        assert (found.path, found.words) == (place / "lib.so", words)
        assert found.place == (None if words else place)
        if not words:
            mounting = found.replaced(command, place / "built")
            assert mounting[-len(command) - 1 :] == ("--", *command)
            assert mounting[-len(command) - 3 : -len(command) - 1] == (
                str(place / "built"),
                str(place / "lib.so"),
            )
    with pytest.raises(UsageError, match=r"does not name .*gone, and there is no such file"):
        find_program(("./run.sh",), Path("gone"), place)
    assert find_program(("./gone",), Path("gone"), place).words == (0,), "it will be built"
    monkeypatch.setattr(program_word, "why_no_mounts", lambda: "forbidden")
    assert find_program(("./run.sh", "lib.so"), Path("lib.so"), place).words == (1,)
    with pytest.raises(MissingError, match=r"lets nobody put a built file in its place") as caught:
        find_program(("./run.sh",), Path("lib.so"), place)
    assert caught.value.cause == "forbidden"
    for nothing in ((), ("", "a")):
        with pytest.raises(UsageError, match="no application was given"):
            find_program(nothing, None, place)


WHERE = ("named", "own", "other", "below")


@pytest.mark.parametrize("count", range(len(WHERE) + 1))
def test_the_file_with_the_kernels_by_who_names_it(place, count):
    """The profiler's names go first, then what the process mapped, what any mapped, what lies below."""
    paths = {where: place / f"{where}.co" for where in WHERE}
    for path in paths.values():
        path.touch()
    mapped = {7: ["own.co", "nowhere.so", "/usr/lib/libc.so"], 8: [str(paths["other"])]}
    for holding in itertools.combinations(WHERE, count):
        for doubled in (False, True):
            kernels = {paths[where]: ("scale(float*)",) for where in holding}
            files = [paths["named"]]
            if doubled and "named" in holding:
                kernels[paths["below"]] = ("scale(float*)",)
                files.append(paths["below"])
            processes = (Launches(7, frozenset({"scale(float*)"}), frozenset(files)),)

            def kernels_of(path, kernels=kernels):
                return kernels.get(path, ("another",))

            if len(files) > 1:
                with pytest.raises(UsageError, match="several files hold kernels that the command launches"):
                    choose_file(processes, mapped, place, b"scale", kernels_of)
                continue
            found = choose_file(processes, mapped, place, b"void scale()", kernels_of)
            assert found.path == next((paths[where] for where in WHERE if where in holding), None)
            assert found.kernels == ("scale(float*)",)


def test_only_kernels_of_the_source_count(place):
    for name in ("a.co", "b.co"):
        (place / name).touch()
    holds = {place / "a.co": ("alpha()",), place / "b.co": ("beta<int>()",)}
    both = (
        Launches(7, frozenset({"alpha()"}), frozenset()),
        Launches(None, frozenset({"beta<int>()"}), frozenset()),
    )

    def kernels_of(path):
        return holds.get(path, ())

    for source, file, kernels in (
        (b"template<class T> void beta()", "b.co", ("beta<int>()",)),
        (b"void alpha() {}", "a.co", ("alpha()",)),
    ):
        found = choose_file(both, {}, place, source, kernels_of)
        assert (found.path, found.kernels) == (place / file, kernels)
    for source in (None, b"alpha beta"):
        with pytest.raises(UsageError, match=r"several files hold kernels .*a\.co, .*b\.co"):
            choose_file(both, {}, place, source, kernels_of)
    with pytest.raises(UsageError, match="launches no kernel of the source") as caught:
        choose_file(both, {}, place, b"gamma", kernels_of)
    assert caught.value.cause == "kernels that it launches: alpha, beta"
    with pytest.raises(UsageError, match=r"the command launches no kernel$") as caught:
        choose_file((), {}, place, None, kernels_of)
    assert caught.value.cause == "kernels that it launches: none"


def test_what_the_linker_says_of_each_process(tmp_path):
    """The lines of ``LD_DEBUG=files``, ld.so(8)."""
    log = tmp_path / "mapped"
    (tmp_path / "mapped.12").write_text(
        "        12:\tfile=libm.so.6 [0];  needed by ./app [0]\n"
        "        12:\tcalling init: /lib/libm.so.6\n"
        "        12:\tinitialize program: ./app\n"
        "        12:\tcalling init: ./out/lib a.so\n"
        "        12:\tcalling init: ./app\n"
        "        12:\tcalling fini: ./late.so [0]\n"
    )
    (tmp_path / "mapped.9").write_bytes(b"         9:\tinitialize program: /x/\xff\n")
    (tmp_path / "mapped.txt").write_text("         1:\tinitialize program: ./no\n")
    assert mapped_files(log) == {12: ["/lib/libm.so.6", "./app", "./out/lib a.so"], 9: ["/x/\udcff"]}
