"""Two builds from nothing give the same device code, or it is said that they do not."""

from __future__ import annotations

import pytest

from rpl_optimize.build.builders import build_reproducibly

pytestmark = pytest.mark.clang


def test_two_equal_builds_are_reproducible_and_the_first_is_kept(hipcc, project, tmp_path):
    root = tmp_path / "session"
    builder = project.builder(build_command="hipcc -g -O1 {source} -o {output}")
    # A path that the source writes into its own code: the same both times.
    text = project.whole.replace(b"FACTOR + LOCAL;", b"FACTOR + LOCAL + __FILE__[blockIdx.x];")
    found = build_reproducibly(builder, text, root / "candidate", root=root)
    assert found.build is not None
    assert found.build.binary.is_file()
    part = found.part
    assert (part.reproducible, part.problem) == (True, None)
    assert part.binary == "candidate/build/bin/app"
    assert part.log == "candidate/build/build.log"
    assert part.code_sha256 == found.build.code_sha256
    assert len(part.commands) == 2
    assert [path.name for path in (root / "candidate").iterdir()] == ["build"]


def test_code_that_differs_each_time_is_noticed(hipcc, project, tmp_path):
    script = 'hipcc -O1 -DNOW="$(date +%N).0f" "$0" -o "$1"'
    builder = project.builder(build_command=f"sh -c '{script}' {{source}} {{output}}")
    text = project.whole.replace(b"FACTOR + LOCAL", b"FACTOR + LOCAL + NOW")
    found = build_reproducibly(builder, text, tmp_path / "candidate", root=tmp_path)
    assert found.part.reproducible is False
    assert found.build is not None
    assert found.build.binary.is_file()
    assert (tmp_path / "candidate" / "second" / "build.log").is_file()


def test_host_code_that_differs_does_not_matter(hipcc, project, tmp_path):
    script = 'hipcc -O1 -DNOW="1$(date +%N)LL" "$0" -o "$1"'
    builder = project.builder(build_command=f"sh -c '{script}' {{source}} {{output}}")
    text = project.whole.replace(b'std::printf("%g\\n", run_scale())', b'std::printf("%lld\\n", NOW)')
    assert build_reproducibly(builder, text, tmp_path / "candidate", root=tmp_path).part.reproducible is True


def test_a_failure_is_evidence_with_a_problem(hipcc, project, tmp_path):
    builder = project.builder(build_command="hipcc {source} -o {output}")
    found = build_reproducibly(builder, b"nonsense", tmp_path / "candidate", root=tmp_path)
    assert found.build is None
    assert found.part.problem is not None
    assert "error:" in found.part.problem
    assert (found.part.reproducible, found.part.binary) == (None, None)
    assert (tmp_path / str(found.part.log)).is_file()


def test_a_second_build_that_fails_is_said_so(hipcc, project, tmp_path, monkeypatch):
    monkeypatch.setenv("RPL_SANDBOX", "off")  # it remembers the first build by a file elsewhere
    flag = tmp_path / "flag"
    script = f'test -e {flag} && echo "x: error: again" && exit 1; touch {flag}; hipcc "$0" -o "$1"'
    builder = project.builder(build_command=f"sh -c '{script}' {{source}} {{output}}")
    found = build_reproducibly(builder, project.whole, tmp_path / "candidate", root=tmp_path)
    assert found.build is None
    assert found.part.problem == "the first build succeeded, the second one failed: x: error: again"
    assert found.part.binary == "candidate/build/bin/app"
    assert "again" in (tmp_path / str(found.part.log)).read_text()


@pytest.mark.long
@pytest.mark.long
def test_a_database_and_a_project_build_reproducibly_too(hipcc, project, tmp_path, rpl_require):
    rpl_require("make")
    database = project.write_database(tmp_path / "db" / "compile_commands.json")
    before = project.hash
    for name, options in (
        ("database", {"compile_database": database}),
        ("project", {"build_command": "make app", "project": project.root}),
    ):
        builder = project.builder(**options)
        found = build_reproducibly(
            builder, project.source.read_bytes(), tmp_path / f"by-{name}", root=tmp_path
        )
        assert found.part.reproducible is True
        assert found.build is not None
        assert project.printed((str(found.build.binary),)) == "3"
    assert project.hash == before
