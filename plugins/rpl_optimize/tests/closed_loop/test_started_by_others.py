"""Programs that a script starts: found by one recorded run, exchanged for each run, never replaced."""

from __future__ import annotations

import subprocess

import pytest

from rpl_optimize.running.program_word import why_no_mounts

pytestmark = [
    pytest.mark.clang,
    pytest.mark.long,
    pytest.mark.skipif(why_no_mounts() is not None, reason="nothing can be mounted here"),
]


def test_a_program_that_a_script_starts_is_found_and_exchanged(loop) -> None:
    script = loop.bench.folder / "run.sh"
    script.write_text('#!/bin/sh\nmkdir -p data && cd data && ../smooth "$@" && mv smooth.out ..\n')
    script.chmod(0o755)
    users = (loop.bench.folder / "smooth").read_bytes()
    loop.script("wrong results", "faster")
    command = ("./run.sh", "64", "1")
    outcome = loop("--no-traffic-gate", "--max-iters", "2", *loop.CHECKED, command=command).assert_ok()
    assert f"binary: {loop.bench.folder / 'smooth'} (it holds fade(" in outcome.stderr
    wrong, faster = loop.document()["candidates"]
    assert wrong["judgement"]["stage"] == "equivalence"
    assert faster["judgement"]["verdict"] == "accepted", faster
    assert loop.document()["command"] == ["./run.sh", "64", "1"]
    (started,) = loop.events("session_started")
    assert started["options"]["binary"] == str(loop.bench.folder / "smooth"), (
        "so a session that goes on knows"
    )
    assert (loop.bench.folder / "smooth").read_bytes() == users
    loop.verify()


DRIVER = """
import ctypes, sys
library = ctypes.CDLL("./libwork.so")
words = [b"driver.py", *(word.encode() for word in sys.argv[1:])]
sys.exit(library._Z4workiPPc(len(words), (ctypes.c_char_p * len(words))(*words)))
"""
MAKEFILE = """
libwork.so: smooth.hip
\thipcc -O3 --offload-arch=gfx942 -Dmain=work -fPIC -shared $< -o $@
"""


def test_a_kernel_in_a_header_of_a_library_that_python_loads(loop) -> None:
    """Nothing is said about the build, and no word names the library."""
    folder, text = loop.bench.folder, loop.source.read_text()
    begin, end = text.index("// Most of the time"), text.index("int main(")
    (folder / "kernels.hpp").write_text("#pragma once\n" + text[begin:end])
    loop.source.write_text(text[:begin] + '#include "kernels.hpp"\n' + text[end:])
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / "driver.py").write_text(DRIVER)
    subprocess.run(["make"], cwd=folder, check=True, capture_output=True)
    users = (folder / "libwork.so").read_bytes()
    loop.script("faster")
    command = ("kernels.hpp", "python3", "driver.py", "64", "1")
    outcome = loop("--no-traffic-gate", "--max-iters", "1", *loop.CHECKED, command=command).assert_ok()
    assert f"binary: {folder / 'libwork.so'}" in outcome.stderr
    assert "built by: make -B libwork.so" in outcome.stderr
    (faster,) = loop.document()["candidates"]
    assert faster["judgement"]["verdict"] == "accepted", faster
    assert "#pragma unroll 4" in (folder / "kernels_opt.hpp").read_text()
    assert (folder / "libwork.so").read_bytes() == users
    loop.verify()
