"""The stand-in profiler serving real traces, with a file that stands for the decoder library."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

SCENARIO = {
    "application": {
        "name": "traced",
        "kernels": [
            {"name": "gemm_prefetch", "grid": [4096, 1, 1], "workgroup": [256, 1, 1], "nominal_ns": 50_000},
            {"name": "small_kernel", "grid": [256, 1, 1], "workgroup": [256, 1, 1], "nominal_ns": 2_000},
        ],
        "steps": [{"launch": "gemm_prefetch", "times": 4}, {"launch": "small_kernel"}, {"sync_device": True}],
    }
}


@pytest.fixture
def decoder(tmp_path: Path, monkeypatch) -> Path:
    """A folder with a file of the decoder's name, which rpl and the stand-in find."""
    folder = tmp_path / "decoder"
    folder.mkdir()
    (folder / "librocprof-trace-decoder.so").write_bytes(b"")
    monkeypatch.setenv("RPL_ATT_LIBRARY_PATH", str(folder))
    return folder


@pytest.fixture
def profiler(tmp_path: Path, monkeypatch, rpl_standin_rocprofv3, att_folder):
    """``profiler("wave_gemm", misbehave="...")``: what the stand-in serves and how it fails."""
    monkeypatch.delenv("RPL_ROCPROFV3", raising=False)
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps(SCENARIO))
    monkeypatch.setenv("RPL_STANDIN_SCENARIO", str(scenario))

    def serve(*names: str, misbehave: str = "") -> None:
        monkeypatch.setenv("RPL_STANDIN_ATT", os.pathsep.join(str(att_folder(name)) for name in names))
        monkeypatch.setenv("RPL_STANDIN_MISBEHAVE", misbehave)

    return serve
