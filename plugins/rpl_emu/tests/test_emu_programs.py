"""Where programs on the emulated GPU get their parts from, and what is said when one is absent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rpl_core.errors import MissingError
from rpl_emu.software_gpu import Runtime, find_launcher, find_runtime

LIBRARIES = "usr/lib/x86_64-linux-gnu"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """``cache(name, libraries...)``: one runtime that was fetched."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def make(name, *libraries):
        root = tmp_path / "rpl" / "rocm-runtime" / name
        (root / LIBRARIES).mkdir(parents=True)
        for library in ("libhsa-runtime64.so.1", *libraries):
            (root / LIBRARIES / library).touch()
        (root / "versions.txt").touch()
        return root

    return make


def test_a_fetched_runtime_has_the_version_that_the_program_was_linked_with(cache, tmp_path):
    program = tmp_path / "app"
    program.write_bytes(b"\0libamdhip64.so.6\0")
    with pytest.raises(MissingError, match=r"here with libamdhip64\.so\.6"):
        find_runtime([str(program)], None, ())
    cache("old", "libamdhip64.so.5")
    wanted = cache("right", "libamdhip64.so.6")
    cache("newest", "libamdhip64.so.7")
    assert find_runtime([str(program)], None, ()) == Runtime(wanted)
    system = wanted / LIBRARIES
    assert find_runtime([str(program)], None, (str(system),)) == Runtime()
    (system / "libamdhip64.so.6").rename(system / "libamdhip64.so.4")
    with pytest.raises(MissingError, match=r"here with libamdhip64\.so\.6"):
        find_runtime([str(program)], None, (str(system),))


def test_a_folder_that_is_no_runtime_is_refused(tmp_path):
    with pytest.raises(MissingError, match=r"holds no libhsa-runtime64.so.1"):
        find_runtime(["app"], tmp_path)


def test_the_program_s_output_and_exit_code_pass(cache, tmp_path):
    root = cache("only")
    for name in ("rpl-emu", "libsoftkfd.so"):
        (tmp_path / name).touch()
    launcher = tmp_path / "softkfd-run"
    launcher.write_text('#!/bin/sh\necho "$@" $SOFTKFD_GPUS\nexit 7\n')
    launcher.chmod(0o755)
    start = "import sys; from rpl_core.cli import main; sys.exit(main())"
    words = ["-c", start, "emu", "run", "--runtime", root, "--gpus", "2", "--", "true", "-v"]
    environment = {**os.environ, "RPL_EMU_FOLDER": str(tmp_path)}
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (7, "")
    assert done.stdout == f"--executor emu --runtime {root} true -v 2\n"
    (tmp_path / "libsoftkfd.so").unlink()
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
    assert done.returncode == 69
    assert "the software KFD is not beside" in done.stderr


def test_the_launcher_is_looked_for_beside_the_emulator(tmp_path, monkeypatch):
    monkeypatch.setenv("RPL_EMU_FOLDER", str(tmp_path / "build"))
    emulator, software = tmp_path / "build/native/emu", tmp_path / "build/native/softkfd"
    for folder in (emulator, software):
        folder.mkdir(parents=True)
    for path in (emulator / "rpl-emu", software / "softkfd-run", software / "libsoftkfd.so"):
        path.touch()
    assert find_launcher() == software / "softkfd-run"


def test_the_doctor_names_the_runtimes_or_how_to_get_one(cache, rpl_cli, monkeypatch):
    monkeypatch.setattr("rpl_emu.software_gpu._SYSTEM", ())
    shown = rpl_cli("doctor", "--json").json()["emulated-runtime"]
    assert (shown["status"], shown["remedy"][:19]) == ("missing", "rpl emu get-runtime")
    root = cache("one", "libamdhip64.so.6")
    (root / "versions.txt").write_text("libamdhip64-dev 9\nlibamdhip64-6 6.4.3-5\n")
    shown = rpl_cli("doctor", "--json").json()["emulated-runtime"]
    assert (shown["status"], shown["found"]) == ("ok", f"HIP 6.4.3-5 in {root}")


@pytest.mark.parametrize("called", ["softkfd-run", "./softkfd-run", "{folder}/softkfd-run"])
def test_the_launcher_finds_what_lies_beside_it_however_it_is_called(tmp_path, called):
    source = Path(__file__).parents[3] / "native" / "softkfd" / "softkfd-run"
    (tmp_path / "softkfd-run").write_text(source.read_text())
    words = ["sh", called.format(folder=tmp_path), "--executor", "shadow", sys.executable, "-c"]
    done = subprocess.run(
        [*words, "import os; print(os.environ['LD_PRELOAD'])"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == f"{tmp_path}/libsoftkfd.so\n", done.stderr
