"""The kernels of `rpl ceilings measure` on the emulated GPU: their modelled rates are no ceilings."""

from __future__ import annotations

import shlex

import pytest

from rpl_testkit.requirements import require

pytestmark = [pytest.mark.clang, pytest.mark.long, pytest.mark.timeout(900)]

DEVICE = "gfx942-emu"


def test_an_emulated_device_gives_modelled_rates_and_no_ceiling(
    native_build, emulator, hip_runtime, tmp_path, monkeypatch, rpl_cli
):
    del emulator
    monkeypatch.setenv("RPL_EMU_FOLDER", str(native_build))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    words = ["--device", DEVICE, "--launches", "2", "--iterations", "3", "--mebibytes", "1"]
    ran = rpl_cli(
        "ceilings", "measure", *words, "--workgroups", "2", "--build", _compile(hip_runtime), "--json"
    )
    found = ran.assert_ok().json()
    assert (found["origin"], found["collector"]) == ("modelled", DEVICE)
    assert "no ceiling, since nothing was measured" in ran.stderr
    assert len(found["rates"]) == 15
    assert {one["launches"] for one in found["rates"]} == {2}
    listed = rpl_cli("ceilings", "--device", DEVICE, "--json").assert_ok().json()["ceilings"]
    assert "measured" not in {one["origin"] for one in listed}


def _compile(runtime):
    """clang with the headers and libraries of a runtime that is not installed."""
    bitcode = next(runtime.glob("usr/lib/llvm-*/lib/clang/*/amdgcn/bitcode"))
    library = next((runtime / "usr/lib/x86_64-linux-gnu").glob("libamdhip64.so.?"))
    device = ["-x", "hip", "--offload-arch=gfx942", "-D__AMDGCN_WAVEFRONT_SIZE=64", "-O3"]
    places = [f"--rocm-path={runtime / 'usr'}", f"--rocm-device-lib-path={bitcode}"]
    headers = ["-mcode-object-version=5", "-isystem", str(runtime / "usr" / "include")]
    link = ["-L", str(library.parent), f"-l:{library.name}", "-Wl,--allow-shlib-undefined"]
    command = [require("clang++-22"), *device, *places, *headers, "SOURCE", "-o", "OUTPUT", *link]
    return shlex.join(map(str, command)).replace("SOURCE", "{source}").replace("OUTPUT", "{output}")
