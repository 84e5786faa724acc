"""Whole programs: what kernels ask of the host while they run, limits, and what a start costs."""

from __future__ import annotations

import os
import pty
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.clang, pytest.mark.timeout(300)]
RUN = (sys.executable, "-c", "import sys; from rpl_core.cli import main; sys.exit(main())", "emu", "run")


@pytest.fixture
def words(native_build, monkeypatch):
    """``words(runtime, program, ..., options=...)``: of ``rpl emu run``."""
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))

    def make(runtime: Path, *program: str | Path, options: tuple[str, ...] = ()) -> list[str]:
        return [*RUN, "--runtime", str(runtime), *options, "--", *map(str, program)]

    return make


@pytest.fixture
def run(words):
    def start(*arguments, options: tuple[str, ...] = ()):
        return subprocess.run(words(*arguments, options=options), capture_output=True, text=True, timeout=120)

    return start


@pytest.mark.parametrize("level", ["-O0", pytest.param("-O3", marks=pytest.mark.long)])
def test_a_kernel_prints_asserts_and_allocates(run, hip_runtime, hip_program, level):
    runtime, program = hip_runtime, hip_program("hip_services", hip_runtime, level=level)
    said = "".join(f"lane {lane} of 7: text {lane / 4:.2f}\n" for lane in range(3))
    assert (run(runtime, program, "print").stdout) == said
    assert run(runtime, program, "assert", "y").returncode == 0
    failed = run(runtime, program, "assert", "n")
    assert "Device-side assertion `threadIdx.x < below' failed" in failed.stdout + failed.stderr
    assert "stopped itself (s_trap), workgroup (0, 0, 0), wave 0" in failed.stderr
    assert "HSA_STATUS_ERROR_EXCEPTION" in failed.stderr  # ROCr's own words: its queue is in error
    assert failed.returncode == -signal.SIGABRT
    assert run(runtime, program, "heap").stdout == "wrong 0\n"


@pytest.mark.long
def test_all_workgroups_of_a_cooperative_launch_meet(run, hip_runtime, rocm_runtime, hip_program):
    """They count in memory; HIP 5.7 sets up the GPU's own barrier, too (DS_GWS_INIT)."""
    for runtime in (rocm_runtime("--suite", "trixie"), hip_runtime):
        done = run(runtime, hip_program("hip_grid", runtime, level="-O2"))
        assert (done.returncode, done.stdout) == (0, "wrong 0\n"), done.stderr


@pytest.mark.parametrize(
    "level", ["-O1", *(pytest.param(level, marks=pytest.mark.long) for level in ("-O0", "-O3"))]
)
def test_sines_of_all_magnitudes_are_those_of_the_host(run, hip_runtime, hip_program, level):
    """OCML's arguments from 2^30 on go through V_TRIG_PREOP_F64: one wrong bit of 2/pi is far off."""
    done = run(hip_runtime, hip_program("hip_trigonometry", hip_runtime, level=level))
    assert done.returncode == 0, done.stderr
    apart = [float(one) for one in done.stdout.split()]
    assert len(apart) == 3
    assert max(apart) <= 2, apart  # units of the last place; the host's own are below 1


def test_a_time_limit_ends_a_program_and_says_where(run, hip_runtime, hip_program):
    program = hip_program("hip_endless", hip_runtime)
    done = run(hip_runtime, program, "kernel", options=("--time-limit", "2"))
    assert (done.returncode, done.stdout) == (124, "begun\n")
    assert "the time limit was reached in the kernel '_Z7endlessPVi', workgroup (0, 0, 0)" in done.stderr
    done = run(hip_runtime, program, "host", options=("--time-limit", "2"))
    assert (done.returncode, done.stdout) == (124, "begun\n")
    assert "the time limit was reached, and no kernel was running" in done.stderr


def test_an_interrupt_ends_a_program_and_a_terminal_shows_how_far_it_is(words, hip_runtime, hip_program):
    ours, theirs = pty.openpty()
    program = hip_program("hip_endless", hip_runtime)
    with subprocess.Popen(
        words(hip_runtime, program, "kernel"), stdout=subprocess.PIPE, stderr=theirs
    ) as started:
        os.close(theirs)
        assert started.stdout is not None
        assert started.stdout.readline() == b"begun\n"
        shown = b""
        while b"/s" not in shown:
            shown += os.read(ours, 4096)
        started.send_signal(signal.SIGINT)
    os.close(ours)
    assert b"emulator: " in shown
    assert b" wave instructions, " in shown
    assert started.returncode == -signal.SIGINT


def test_code_is_disassembled_once_for_a_kernel(native_build, hip_runtime, hip_program, tmp_path):
    """Device libraries at -O0 are full of what is not offered; what was behind it was looked up anew."""
    program = hip_program("hip_services", hip_runtime, level="-O0")
    emulator = native_build / "native" / "emu"
    for library in emulator.glob("librpl-emu-*.so"):
        (tmp_path / library.name).symlink_to(library)
    asked = tmp_path / "asked"
    script = tmp_path / "rpl-emu"
    script.write_text(f'#!/bin/sh\nexec 3<&0\ntee {asked} <&3 | {emulator / "rpl-emu"} "$@" &\n')
    script.chmod(0o755)
    libraries = hip_runtime / "usr/lib/x86_64-linux-gnu"
    preload = native_build / "native" / "softkfd" / "libsoftkfd.so"
    command = [libraries / "ld-linux-x86-64.so.2", "--library-path", libraries, "--preload", preload]
    log = tmp_path / "log"
    settings = {"SOFTKFD_EMULATOR": str(script), "SOFTKFD_LOG": str(log)}
    done = subprocess.run(
        [*command, program, "assert", "y"], env={**os.environ, **settings}, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    kernels = {line for line in log.read_text().splitlines() if line.startswith("kernel ")}
    content, at, bytes_asked = asked.read_bytes(), 0, 0
    while at < len(content):
        _, size = struct.unpack_from("<QQ", content, at)
        at, bytes_asked = at + 16 + size, bytes_asked + size
    # The program's code object has 60 KB of code; HIP's own kernels are smaller.
    assert 0 < bytes_asked <= len(kernels) * 2 * 65536, (bytes_asked, kernels)
