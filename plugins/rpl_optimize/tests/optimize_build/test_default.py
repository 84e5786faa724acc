"""No instruction at all: hipcc, else clang, for the architecture that is known."""

from __future__ import annotations

import pytest

from rpl_core.errors import MissingError, UsageError
from rpl_optimize.build import systems

pytestmark = pytest.mark.clang


@pytest.fixture(autouse=True)
def without_makefile(project):
    """Or make would be asked."""
    (project.root / "Makefile").unlink()


def test_hipcc_builds_one_file_for_the_given_architecture(hipcc, project, build_ok):
    before = project.hash
    build = build_ok(project.builder(architecture="gfx942", link_flags=("-lm",)), project.whole)
    device, host, link = build.commands
    assert "--offload-device-only" in device
    assert "--offload-host-only" in host
    assert {command[0] for command in build.commands} == {"hipcc"}
    assert all("--offload-arch=gfx942" in command for command in build.commands)
    assert link[-1] == "-lm"
    assert project.printed((str(build.binary),)) == "3"
    assert project.hash == before


def test_the_architecture_is_that_of_the_users_program_with_its_features(hipcc, project, build_ok):
    template = "hipcc --offload-arch=gfx942:xnack- {source} -o {output}"
    users = build_ok(project.builder(build_command=template), project.whole)
    (project.root / "app").write_bytes(users.binary.read_bytes())
    for architecture in (None, "gfx942"):
        assert "--offload-arch=gfx942:xnack-" in project.builder(architecture=architecture).summary
    assert "--offload-arch=gfx90a" in project.builder(architecture="gfx90a").summary


def test_clang_takes_over_where_there_is_no_hipcc(project, monkeypatch):
    monkeypatch.setattr(systems, "HIPCC", ())
    monkeypatch.setattr(systems, "CLANG", ("clang++-22",))
    summary = project.builder(architecture="gfx942", link_flags=("libx.a",)).summary
    assert "-x hip -c scale.hip -o scale.o; clang++-22" in summary
    assert summary.endswith("--hip-link scale.o -o app libx.a")
    with pytest.raises(UsageError, match="architecture"):
        project.builder()


def test_without_any_compiler_it_says_what_to_install(project, monkeypatch):
    monkeypatch.setattr(systems, "HIPCC", ())
    monkeypatch.setattr(systems, "CLANG", ())
    with pytest.raises(MissingError, match="no HIP compiler") as caught:
        project.builder(architecture="gfx942")
    assert "--build" in caught.value.one_line()


def test_a_header_can_not_be_built_alone(hipcc, project):
    with pytest.raises(UsageError, match="is a header"):
        project.builder(source=project.root / "include" / "scale.h")


def test_a_source_that_is_not_there_is_named(project):
    with pytest.raises(UsageError, match="no source file"):
        project.builder(source=project.root / "absent.hip")
