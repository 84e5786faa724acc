"""A judge of one source, read with clang 22 and the stand-in's headers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import rpl_testkit
from rpl_optimize.source_meaning.front_end import FrontEnd
from rpl_optimize.source_meaning.judge import MeaningJudge

_HEADERS = Path(rpl_testkit.__file__).parent / "hipcc_standin" / "include"


@pytest.fixture
def front_end(rpl_require: Callable[[str], Path], tmp_path: Path) -> FrontEnd:
    words = ("-x", "hip", "--offload-arch=gfx942", "-nogpuinc", "-nogpulib", "-O3", "-I", str(_HEADERS))
    source = tmp_path / "kernels.hip"
    return FrontEnd((str(rpl_require("clang++-22")), *words), source, source, tmp_path)


@pytest.fixture
def judge_of(front_end: FrontEnd) -> Callable[[bytes], MeaningJudge]:
    def make(text: bytes) -> MeaningJudge:
        front_end.source.write_bytes(text)
        return MeaningJudge(front_end, text)

    return make
