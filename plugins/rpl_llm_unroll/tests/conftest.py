"""The compiler for gfx942 that the tests share, with the corpus of the transformations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rpl_transforms.resource_screen import DeviceCompiler

_CORPUS = Path(__file__).parents[2] / "rpl_transforms" / "tests" / "corpus"


@pytest.fixture
def gfx942(rpl_require: Callable[[str], Path]) -> DeviceCompiler:
    """Needs no ROCm; the test is skipped without clang-22 or its linker.

    A pragma that the compiler could not follow is an error here, not a warning.
    """
    rpl_require("ld.lld-22")
    standin = ("-include", str(_CORPUS / "hip_standin.h"))
    flags = ("-nogpuinc", "-nogpulib", "-Werror=pass-failed", *standin)
    return DeviceCompiler(rpl_require("clang++-22"), "gfx942", flags, _CORPUS)
