"""``rpl transform``: lists candidates with verdicts, prints edited source, never writes the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpl_testkit
from rpl_optimize.interfaces.transformation import Edit
from rpl_optimize.transform import apply_edits

SHOUT = """
from rpl_optimize.interfaces.transformation import Edit, EditCandidate, GuardVerdict, Transformation

class Shout(Transformation):
    name, summary, suffixes = "shout", "Upper-case words.", (".hip",)

    def propose(self, source):
        found = []
        for word in (b"alpha", b"beta"):
            at = source.text.find(word)
            if at >= 0 and source.kernel in (None, word.decode()):
                safe = word == b"alpha"
                guard = GuardVerdict("is-alpha", safe, "" if safe else "beta must stay", None if safe else 2)
                found.append(EditCandidate(
                    id=word.decode(), kernel=word.decode(), line=source.text[:at].count(b"\\n") + 1,
                    summary="shout " + word.decode(), edits=(Edit(at, at + len(word), word.upper()),),
                    guards=(guard,),
                ))
        return tuple(found)

@hookimpl
def rpl_transformations():
    return (Shout(),)
"""

FAILING = """
from rpl_optimize.interfaces.transformation import Edit, EditCandidate, Transformation

class Item(Transformation):
    name, summary, suffixes = "failing", "s", (".hip",)
    def propose(self, source):
        {body}

@hookimpl
def rpl_transformations():
    return (Item(),)
"""


@pytest.fixture
def transform(rpl_site, rpl_cli, tmp_path):
    file = tmp_path / "kernels.hip"
    file.write_bytes(b"first alpha\nthen beta \xff\n")

    def call(*options, path=file):
        only = ",".join(("rpl-optimize", *rpl_site.distributions))
        return rpl_cli("transform", path, *options, env={"RPL_LOAD_PLUGINS": only})

    call.file = file
    return call


def test_candidates_are_listed_with_verdicts_and_reasons(rpl_site, transform):
    rpl_site.plugin("shout", SHOUT)
    lines = transform().assert_ok().stdout.splitlines()
    assert [line.split()[:4] for line in lines[1:3]] == [
        ["shout:alpha", "1", "alpha", "allowed"],
        ["shout:beta", "2", "beta", "refused"],
    ]
    assert lines[3] == "shout:beta: guard is-alpha, line 2: beta must stay"


def test_json_holds_guards_and_edits(rpl_site, transform):
    rpl_site.plugin("shout", SHOUT)
    alpha, beta = transform("--json").assert_ok().json()["candidates"]
    assert (alpha["plugin"], alpha["transformation"], alpha["allowed"]) == ("shout", "shout", True)
    assert alpha["edits"] == [{"begin": 6, "end": 11, "replacement": "ALPHA"}]
    assert beta["guards"] == [{"guard": "is-alpha", "passed": False, "reason": "beta must stay", "line": 2}]


def test_apply_prints_the_changed_bytes_and_leaves_the_file_alone(rpl_site, transform):
    rpl_site.plugin("shout", SHOUT)
    before = transform.file.read_bytes()
    outcome = transform("--apply", "shout:alpha").assert_ok()
    assert outcome.stdout.encode("utf-8", "surrogateescape") == b"first ALPHA\nthen beta \xff\n"
    assert transform.file.read_bytes() == before


def test_a_refused_candidate_is_not_applied(rpl_site, transform):
    rpl_site.plugin("shout", SHOUT)
    outcome = transform("--apply", "shout:beta").assert_exit(1)
    assert outcome.stdout == ""
    assert "beta must stay" in outcome.stderr


def test_an_unknown_candidate_names_the_known_ones(rpl_site, transform):
    rpl_site.plugin("shout", SHOUT)
    outcome = transform("--apply", "shout:gamma").assert_exit(64)
    assert "known: shout:alpha, shout:beta" in outcome.stderr


def test_one_kernel_can_be_chosen(rpl_site, transform):
    rpl_site.plugin("shout", SHOUT)
    document = transform("--kernel", "beta", "--json").json()
    assert [c["id"] for c in document["candidates"]] == ["shout:beta"]


def test_nothing_to_change_is_no_failure(rpl_site, transform, tmp_path):
    rpl_site.plugin("shout", SHOUT)
    (tmp_path / "empty.hip").touch()
    outcome = transform(path=tmp_path / "empty.hip").assert_ok()
    found_by = "shout found nothing that could be changed"
    assert (outcome.stdout, outcome.stderr.strip()) == ("", f"no candidates: {found_by}")


def test_a_kernel_without_candidates_names_those_with(rpl_site, transform):
    rpl_site.plugin("shout", SHOUT)
    outcome = transform("--kernel", "gamma").assert_ok()
    assert "no candidates for the kernel 'gamma'" in outcome.stderr
    assert "with candidates: alpha, beta" in outcome.stderr


@pytest.mark.parametrize(
    ("body", "fragment"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("return [1]", "returned list"),
        ("return (1,)", "returned int among the candidates"),
        ("return (EditCandidate('a', None, 1, 's', (Edit(0, 999, b''),)),)", "leaves the file"),
        ("return (EditCandidate('a', None, 1, 's', (Edit(0, 3, b''), Edit(2, 4, b''))),)", "overlap"),
        ("return (EditCandidate('a', None, 1, 's', ()),) * 2", "two candidates are called 'a'"),
        ("return (EditCandidate('a', None, 'x', 's', ()),)", "no line number"),
    ],
)
def test_a_failing_transformation_costs_only_itself(rpl_site, transform, body, fragment):
    rpl_site.plugin("shout", SHOUT)
    rpl_site.plugin("failing", FAILING.format(body=body))
    outcome = transform("--json").assert_ok()
    assert [c["id"] for c in outcome.json()["candidates"]] == ["shout:alpha", "shout:beta"]
    assert fragment in outcome.stderr
    assert "plugin 'failing'" in outcome.stderr


def test_without_any_transformation_the_next_step_is_named(transform):
    assert "no loaded plugin offers transformations" in transform().assert_exit(69).stderr


def test_an_unhandled_kind_of_file_is_refused(rpl_site, transform, tmp_path):
    rpl_site.plugin("shout", SHOUT)
    (tmp_path / "a.py").touch()
    assert (
        "no transformation handles .py files; known: .hip"
        in transform(path=tmp_path / "a.py").assert_exit(65).stderr
    )


def test_a_missing_file_is_named(rpl_site, transform, tmp_path):
    rpl_site.plugin("shout", SHOUT)
    assert "no source file at" in transform(path=tmp_path / "gone.hip").assert_exit(69).stderr


def test_a_huge_file_is_refused(rpl_site, transform, tmp_path):
    rpl_site.plugin("shout", SHOUT)
    with (tmp_path / "huge.hip").open("wb") as file:
        file.truncate((16 << 20) + 1)
    assert "larger than 16 MiB" in transform(path=tmp_path / "huge.hip").assert_exit(65).stderr


def test_apply_and_json_contradict_each_other(rpl_site, transform):
    rpl_site.plugin("shout", SHOUT)
    transform("--apply", "shout:alpha", "--json").assert_exit(64)


LAUNCHES = """
from rpl_optimize.interfaces.transformation import EditCandidate, Transformation

class Launches(Transformation):
    name, summary, suffixes = "launches", "Shows what the compiler says.", (".hip",)
    def propose(self, source):
        return (EditCandidate("it", None, 1, str(source.reading.launches("k")), ()),)

@hookimpl
def rpl_transformations():
    return (Launches(),)
"""
NEEDS_OPTIONS = """#include <hip/hip_runtime.h>
#include "sizes.h"
__global__ void k(float* p) { p[threadIdx.x] = 1; }
void run(float* p) { k<<<1, 2 * SIZE * MORE>>>(p); }
"""


@pytest.fixture
def with_options(rpl_site, transform, tmp_path, rpl_require):
    """A source that compiles with a folder and a definition that only its build knows."""
    rpl_site.plugin("launches", LAUNCHES)
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "sizes.h").write_text("#define SIZE 16\n")
    (tmp_path / "options.hip").write_text(NEEDS_OPTIONS)
    headers = Path(rpl_testkit.__file__).parent / "hipcc_standin" / "include"
    compiler = f"{rpl_require('clang++-22')} -x hip --offload-arch=gfx942 -nogpuinc -nogpulib -I {headers}"

    def summary(*options):
        outcome = transform("--json", *options, path=tmp_path / "options.hip").assert_ok()
        return outcome.json()["candidates"][0]["summary"]

    return f"{compiler} -I {tmp_path}/include -DMORE=4", summary


@pytest.mark.clang
def test_the_build_says_includes_and_definitions(with_options, tmp_path):
    words, summary = with_options
    assert "does not compile" in summary()
    assert "block=(128, 1, 1)" in summary("--build", f"{words} {{source}} -o {{output}}")
    assert not (tmp_path / "unit").exists()
    file = str(tmp_path / "options.hip")
    entry = {"directory": str(tmp_path), "file": file, "command": f"{words} -c {file} -o options.o"}
    database = tmp_path / "commands.json"
    database.write_text(json.dumps([entry]))
    assert "block=(128, 1, 1)" in summary("--compile-database", str(database))
    database.write_text(json.dumps([{**entry, "file": "other.hip"}]))
    assert "has no entry for options.hip" in summary("--compile-database", str(database))


def test_a_build_that_does_not_name_the_file_is_refused(transform):
    outcome = transform("--build", "make app").assert_exit(64)
    assert "--build has to say how the file itself is compiled" in outcome.stderr
    transform("--build", "cc {source}", "--compile-database", "x.json").assert_exit(64)


@given(st.binary(max_size=60), st.lists(st.tuples(st.integers(0, 60), st.binary(max_size=4)), max_size=6))
def test_edits_apply_like_slice_assignment_from_the_end(text, raw):
    cuts = sorted({min(position, len(text)) for position, _ in raw})
    edits = [
        Edit(begin, end, replacement)
        for begin, end, (_, replacement) in zip(cuts[::2], cuts[1::2], raw, strict=False)
    ]
    expected = bytearray(text)
    for edit in reversed(edits):
        expected[edit.begin : edit.end] = edit.replacement
    assert apply_edits(text, reversed(edits)) == bytes(expected)


@pytest.mark.parametrize(
    "edits", [(Edit(0, 2, b""), Edit(1, 3, b"")), (Edit(2, 1, b""),), (Edit(-1, 1, b""),)]
)
def test_edits_that_do_not_fit_are_an_error(edits):
    with pytest.raises(ValueError, match="edit"):
        apply_edits(b"abcdef", edits)
