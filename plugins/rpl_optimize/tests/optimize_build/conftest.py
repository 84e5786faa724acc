"""A small project with a kernel, built by the stand-in for hipcc, and the hash of a whole tree."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from rpl_core.plugins.host import Contribution
from rpl_optimize.build.builders import BuiltProgram, ProgramBuilder, choose_builder
from rpl_optimize.interfaces.builder import BuildRequest, BuildSystem
from rpl_optimize.plugin import rpl_builders
from rpl_testkit.hipcc_standin import install_hipcc, standin_places

SOURCE = """
#include <hip/hip_runtime.h>
#include <cstdio>
#include "../include/scale.h"
#include "local.h"

__global__ void scale(float* values) { values[threadIdx.x] *= FACTOR + LOCAL; }

float run_scale() {
  float host[64], *device;
  for (int i = 0; i < 64; ++i) host[i] = i;
  hipMalloc(&device, sizeof host);
  hipMemcpy(device, host, sizeof host, hipMemcpyHostToDevice);
  scale<<<1, 64>>>(device);
  hipMemcpy(host, device, sizeof host, hipMemcpyDeviceToHost);
  hipFree(device);
  if (hipGetLastError() != hipSuccess) std::printf("line %d\\n", __LINE__);
  return host[1];
}
"""
MAIN = """
#include <cstdio>
float run_scale();
int main() { std::printf("%g\\n", run_scale()); }
"""
MAKEFILE = """
CXX = hipcc
app: src/scale.o src/main.o
\t$(CXX) $^ -o $@
src/scale.o: src/scale.hip src/local.h include/scale.h
\t$(CXX) -c -O1 -DUNUSED=1 $< -o $@
src/main.o: src/main.cpp
\t$(CXX) -c -O1 $< -o $@
"""


def own_systems() -> list[Contribution[BuildSystem]]:
    return [Contribution("optimize", system) for system in rpl_builders()]


def tree_hash(folder: Path) -> str:
    """SHA-256 over names, kinds, modes and contents of everything below ``folder``."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(f"{path.relative_to(folder)} {path.lstat().st_mode:o}\0".encode())
        if path.is_symlink():
            digest.update(str(path.readlink()).encode())
        elif path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


@attrs.frozen
class SmallProject:
    """``root`` is the working directory; the program is ``./app``, the kernel's file ``src/scale.hip``."""

    root: Path

    @property
    def source(self) -> Path:
        return self.root / "src" / "scale.hip"

    @property
    def whole(self) -> bytes:
        """The source with its own ``main``, for ways that build one file."""
        return SOURCE.encode() + MAIN.encode()

    @property
    def hash(self) -> str:
        return tree_hash(self.root)

    @staticmethod
    def printed(command: tuple[str, ...]) -> str:
        """What a built program prints."""
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def builder(self, **options: Any) -> ProgramBuilder:
        settings: dict[str, Any] = {"command": ("./app", "in.txt"), "source": self.source, **options}
        request = BuildRequest(place=Path.cwd(), **settings)
        return choose_builder(request, own_systems(), lambda line: None)

    def write_database(self, path: Path, *, listed: bool = False, flags: str = "-O1") -> Path:
        """Inside of the project in place of the makefile, which would be asked first."""
        if path.is_relative_to(self.root):
            (self.root / "Makefile").unlink(missing_ok=True)
        entries = []
        for name in ("scale.hip", "main.cpp"):
            command = f"hipcc {flags} -MD -MF deps.d -o {name}.o -c src/{name}"
            words = {"arguments": command.split()} if listed else {"command": command}
            entries.append({"directory": str(self.root), "file": f"src/{name}", **words})
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(entries))
        return path


@pytest.fixture
def hipcc(rpl_require: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in for hipcc, first on PATH."""
    rpl_require("clang++-22")
    rpl_require("ld.lld-22")
    program = install_hipcc(tmp_path / "tools")
    monkeypatch.setenv("RPL_SANDBOX_READ", standin_places())
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallProject:
    root = tmp_path / "project"
    for folder in ("src", "include"):
        (root / folder).mkdir(parents=True)
    (root / "src" / "scale.hip").write_text(SOURCE)
    (root / "src" / "local.h").write_text("#define LOCAL 1.0f\n")
    (root / "src" / "main.cpp").write_text(MAIN)
    (root / "include" / "scale.h").write_text("#define FACTOR 2.0f\n")
    (root / "Makefile").write_text(MAKEFILE)
    (root / "in.txt").write_text("data\n")
    monkeypatch.chdir(root)
    return SmallProject(root)


@pytest.fixture
def built(tmp_path: Path) -> Callable[..., Any]:
    """``built(builder, text)``: build in a fresh scratch directory."""
    count = iter(range(100))

    def build(builder: ProgramBuilder, text: bytes) -> Any:
        return builder.build(text, tmp_path / "scratch" / str(next(count)))

    return build


@pytest.fixture
def build_ok(built: Callable[..., Any]) -> Callable[..., BuiltProgram]:
    """The same for builds that must succeed."""

    def build(builder: ProgramBuilder, text: bytes) -> BuiltProgram:
        found = built(builder, text)
        assert isinstance(found, BuiltProgram), found
        return found

    return build
