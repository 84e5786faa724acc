"""What the capture tool declares of HSA is what the headers of real runtimes say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rpl_testkit.requirements import require

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--suite", "forky"), id="forky"),
        pytest.param(("--suite", "trixie"), id="trixie", marks=pytest.mark.long),
        pytest.param(("--suite", "experimental"), id="experimental", marks=pytest.mark.long),
    ],
)
def test_offsets_and_numbers_are_those_of_the_runtimes_headers(rocm_runtime, options):
    headers = rocm_runtime(*options) / "usr" / "include"
    newer = "hsa_amd_vmem_address_reserve_align" in (headers / "hsa" / "hsa_api_trace.h").read_text()
    include = ["-I", ROOT / "native" / "isolate", "-isystem", headers / "hsa", "-isystem", headers]
    source = Path(__file__).parent / "programs" / "isolate_abi.cpp"
    defined = ["-DHAS_RESERVE_ALIGN"] if newer else []
    command = [require("g++"), "-std=c++20", "-fsyntax-only", *defined, *include, source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
