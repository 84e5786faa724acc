"""The corpus: real kernels that say in a comment on each loop's line what the guards must find."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from rpl_core.interfaces.transformation import EditCandidate, KernelSource
from rpl_llm_unroll.compiling.device_compiler import DeviceCompiler
from rpl_llm_unroll.transformation import Unroll

CORPUS = Path(__file__).parent / "corpus"
STANDIN = CORPUS / "hip_standin.h"
_EXPECT = re.compile(r"// expect: (?P<text>.*?)\s*$")


@attrs.frozen
class Expected:
    """``allowed`` maps a form to its factors; ``refused_by`` are all guards that refuse some candidate."""

    allowed: dict[str, tuple[int, ...]]
    refused_by: frozenset[str]
    reason: str


def corpus_files() -> list[Path]:
    return sorted(CORPUS.glob("*.hip"))


def expectations(path: Path) -> dict[int, Expected]:
    """Line -> what the comment on it expects."""
    found = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        match = _EXPECT.search(line)
        if match is not None:
            found[number] = _expected(match["text"])
    return found


def _expected(text: str) -> Expected:
    allowed: dict[str, tuple[int, ...]] = {}
    refused, reason = frozenset[str](), ""
    for part in text.removeprefix("allowed ").split("; "):
        word, _, rest = part.partition(" ")
        if word == "refused":
            guards, _, reason = rest.partition(": ")
            refused = frozenset(guards.split(", "))
        else:
            allowed[word] = tuple(int(factor) for factor in rest.split())
    return Expected(allowed, refused, reason)


def candidates(path: Path) -> tuple[EditCandidate, ...]:
    return Unroll().propose(KernelSource(str(path), path.read_bytes()))


@pytest.fixture
def gfx942(require: Callable[[str], Path]) -> DeviceCompiler:
    """A compiler for gfx942 that needs no ROCm; the test is skipped without clang-22 and its linker."""
    require("ld.lld-22")
    flags = ("-nogpuinc", "-nogpulib", "-Werror=pass-failed", "-include", str(STANDIN))
    return DeviceCompiler(require("clang++-22"), "gfx942", flags, CORPUS)
