"""Relocatable device code (``-fgpu-rdc``): kernels call what other files hold, and the device code is linked.

With real clang, whose program has a runtime that launches nothing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from rpl_core.plugins.host import Contribution
from rpl_optimize.build.builders import BuiltProgram, choose_builder
from rpl_optimize.interfaces.builder import BuildRequest
from rpl_optimize.plugin import rpl_builders

pytestmark = pytest.mark.clang
PROJECT = Path(__file__).parent / "projects" / "relocatable"
FLAGS = ("-x", "hip", "-nogpuinc", "-nogpulib", "--offload-arch=gfx942", "-fgpu-rdc", "-O2")


@pytest.mark.parametrize("way", ["make", pytest.param("compile-database", marks=pytest.mark.long)])
def test_device_code_of_several_files_is_linked_with_the_candidate(tmp_path, rpl_require, way):
    for program in ("clang++-22", "ld.lld-22", "clang-offload-bundler-22", "make"):
        rpl_require(program)
    root = Path(shutil.copytree(PROJECT, tmp_path / "project"))
    if way == "compile-database":
        (root / "Makefile").unlink()
        write_database(root)
    source = root / "more.hip"
    request = BuildRequest(("./app",), source, root)
    if way == "compile-database":
        request = BuildRequest(
            ("./app",), source, root, compile_database=root, link_flags=("-no-hip-rt", "-fuse-ld=lld")
        )
    builder = choose_builder(request, [Contribution("optimize", s) for s in rpl_builders()], print)
    assert builder.system == way
    original = source.read_bytes()
    before = builder.build(original, tmp_path / "before")
    assert isinstance(before, BuiltProgram), before
    for name, text, passed in (
        ("other", original.replace(b"2.0f", b"3.0f"), True),
        ("host", original + b"int host = 1;\n", False),
    ):
        build = builder.build(text, tmp_path / name, original)
        assert isinstance(build, BuiltProgram), build
        assert (build.host_code.passed, build.code_sha256 == before.code_sha256) == (passed, not passed)
        assert [kernel.name for code in build.code_objects for kernel in code.kernels] == ["_Z1kPf"]
        subprocess.run(builder.command_for(build), check=True, timeout=60)


def write_database(root: Path) -> None:
    entries = [
        {"directory": str(root), "file": name, "arguments": ["clang++-22", *flags, "-c", name]}
        for name, flags in (("kernel.hip", FLAGS), ("more.hip", FLAGS), ("main.cpp", ()))
    ]
    (root / "compile_commands.json").write_text(json.dumps(entries))
