"""``--build`` with {source} and {output}: run as the user runs it, with another source and output."""

from __future__ import annotations

import os

import pytest

from rpl_core.errors import MissingError, UsageError
from rpl_optimize.build.builders import BuildFailure

pytestmark = pytest.mark.clang
_TEMPLATE = "hipcc -O1 '-DTEXT=\"two words\"' -Iinclude {source} -o {output}"


def test_the_candidate_is_built_with_the_headers_beside_the_users_source(hipcc, project, build_ok):
    before = project.hash
    text = project.whole.replace(b"FACTOR + LOCAL", b"FACTOR + LOCAL + 10")
    build = build_ok(project.builder(build_command=_TEMPLATE), text)
    assert project.printed((str(build.binary),)) == "13"
    assert [kernel.name for code in build.code_objects for kernel in code.kernels] == ["_Z5scalePf"]
    assert project.hash == before


def test_words_reach_the_compiler_unsplit_and_the_log_tells(hipcc, project, build_ok):
    text = project.whole.replace(b'"%g\\n", run_scale()', b'"%s\\n", (run_scale(), TEXT)')
    build = build_ok(project.builder(build_command=_TEMPLATE), text)
    assert project.printed((str(build.binary),)) == "two words"
    assert '-DTEXT="two words"' in build.commands[0]
    assert build.log.read_text().startswith("$ hipcc -O1 ")


def test_every_word_that_is_the_program_is_replaced_and_no_other(project):
    (project.root / "app").write_text("")
    builder = project.builder(
        build_command="true {source} {output}",
        command=("./app", "in.txt", f"{project.root}/app", "app", "--log=app", "./src/../app"),
    )
    swapped = builder.builder.program.replaced(builder.builder.command, project.root / "other")
    other = str(project.root / "other")
    assert swapped == (other, "in.txt", other, other, "--log=app", other)


def test_behind_a_launcher_the_program_with_device_code_is_meant(hipcc, project, build_ok):
    first = build_ok(project.builder(build_command=_TEMPLATE), project.whole)
    (project.root / "app").write_bytes(first.binary.read_bytes())
    builder = project.builder(build_command=_TEMPLATE, command=("env", "A=1", "./app", "in.txt"))
    build = build_ok(builder, project.whole)
    assert builder.command_for(build) == ("env", "A=1", str(build.binary), "in.txt")


def test_a_command_that_does_not_name_a_binary_that_is_not_there_is_refused(project):
    with pytest.raises(UsageError, match=r"does not name .* there is no such file"):
        project.builder(build_command="true {source} {output}", binary=project.root / "libscale.so")


def test_the_first_error_of_the_compiler_is_the_reason(hipcc, project, built):
    failure = built(
        project.builder(build_command=_TEMPLATE), project.whole.replace(b"threadIdx.x]", b"thread]")
    )
    assert isinstance(failure, BuildFailure)
    assert "error: use of undeclared identifier 'thread'" in failure.reason
    assert failure.log is not None
    assert failure.reason in failure.log.read_text()


@pytest.mark.parametrize("sandbox", ["off", "on"])
def test_what_a_foreign_file_says_is_not_told(hipcc, project, built, tmp_path, monkeypatch, sandbox):
    """The reason goes to a language model that is asked to repair the candidate."""
    monkeypatch.setenv("RPL_SANDBOX", sandbox)
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2:x:0\n")
    text = project.whole.replace(b'#include "local.h"', f'#include "local.h"\n#include "{secret}"'.encode())
    failure = built(project.builder(build_command=_TEMPLATE), text)
    assert isinstance(failure, BuildFailure)
    assert "hunter2" not in failure.reason
    if sandbox == "off":
        assert failure.reason == f"error in {secret}, which is not part of the project: see build.log"
        assert "hunter2" in failure.log.read_text()
    own = project.whole.replace(b"threadIdx.x]", b"thread]")
    assert "undeclared identifier 'thread'" in built(project.builder(build_command=_TEMPLATE), own).reason


def test_an_undefined_symbol_of_the_linker_is_the_reason(hipcc, project, built):
    text = project.whole.replace(b"int main() {", b"int absent(); int main() { absent();")
    failure = built(project.builder(build_command=_TEMPLATE), text)
    assert "undefined symbol: absent" in failure.reason


def test_a_build_that_writes_nothing_is_a_failure(project, built):
    failure = built(project.builder(build_command="true {source} {output}"), b"")
    assert failure.reason == "the build command ended well, but wrote no {output}"


def test_a_program_without_device_code_is_a_failure(project, built, rpl_require):
    rpl_require("clang++-22")
    text = b"int main() { return 0; }"
    failure = built(project.builder(build_command="clang++-22 -x c++ {source} -o {output}"), text)
    assert "device code" in failure.reason
    assert "no .hip_fatbin" not in failure.reason


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("hipcc {source}", r"no \{output\}"),
        ("make -o {output}", r"no \{source\}"),
        ("hipcc 'x {source} -o {output}", "can't be split"),
        ("cd src && hipcc {source} -o {output}", "not run by a shell"),
        ("A=1 hipcc {source} -o {output}", "not run by a shell"),
        ("", "is empty"),
    ],
)
def test_templates_that_can_not_work_are_refused_at_once(project, template, said):
    with pytest.raises(UsageError, match=said):
        project.builder(build_command=template)


def test_a_missing_build_program_is_named_before_anything_is_made(project):
    with pytest.raises(MissingError, match="no-such-compiler"):
        project.builder(build_command="no-such-compiler {source} -o {output}")


def test_the_compiler_gets_no_options_and_no_keys_from_the_environment(project, built, monkeypatch):
    dropped = {"CCC_OVERRIDE_OPTIONS", "SUNPRO_DEPENDENCIES", "OPENAI_API_KEY"}
    for name in (*dropped, "HIPCC_COMPILE_FLAGS_APPEND"):
        monkeypatch.setenv(name, "value")
    monkeypatch.setenv("CPATH", "/of/the/user")
    failure = built(project.builder(build_command="sh -c env {source} {output}"), b"")
    names = dict(line.split("=", 1) for line in failure.log.read_text().splitlines() if "=" in line)
    assert not dropped & names.keys()
    assert names["HIPCC_COMPILE_FLAGS_APPEND"] == "value"
    assert names["CPATH"] == f"{project.source.parent}{os.pathsep}/of/the/user"
    assert names["TMPDIR"].startswith(str(failure.log.parent))
    assert names["PWD"] == str(project.root)


def test_a_header_needs_the_projects_own_build(project):
    with pytest.raises(UsageError, match="is a header"):
        project.builder(build_command="hipcc {source} -o {output}", source=project.root / "src" / "local.h")
