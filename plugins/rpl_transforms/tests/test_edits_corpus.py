"""No offered edit changes a result, on kernels that are written to break it; harmless twins are offered."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import rpl_testkit
from rpl_optimize.interfaces.source_reading import SourceReading
from rpl_optimize.interfaces.transformation import GuardVerdict, KernelSource
from rpl_optimize.source_meaning.front_end import FrontEnd
from rpl_optimize.source_meaning.reading import CompilerReading
from rpl_optimize.transform import apply_edits
from rpl_transforms.lds_padding import LdsPadding
from rpl_transforms.vector_loads import VectorLoads

from .edits_corpus import (
    LOADS_HARMLESS,
    LOADS_HOSTILE,
    PADDING_HARMLESS,
    PADDING_HOSTILE,
    program,
    source,
    texts,
)

pytestmark = pytest.mark.clang
_HEADERS = Path(rpl_testkit.__file__).parent / "hipcc_standin" / "include"


class ProvesAnything(SourceReading):
    """What the transformations would offer if nobody asked the compiler."""

    def used_by_element(self, declared_at, block=None):
        return GuardVerdict("used-by-element", True, "unasked")

    def neighbouring_loads(self, places):
        return GuardVerdict("neighbouring-loads", True, "unasked")

    def launches(self, kernel):
        return "unasked"

    def streamed_stores(self, kernel):
        return "unasked"

    def block_work(self, kernel):
        return "unasked"

    def element_work(self, kernel):
        return "unasked"

    def tree_reductions(self, kernel):
        return "unasked"

    def separate_pointers(self, kernel):
        return "unasked"

    def compiled(self, text, architecture):
        return "unasked"

    def macros(self):
        return frozenset()

    def constants(self, kernel):
        return ()


@pytest.fixture
def reading(rpl_require, tmp_path):
    path = tmp_path / "corpus.hip"
    path.write_text(source(), encoding="utf-8")
    words = ("-x", "hip", "--offload-arch=gfx942", "-nogpuinc", "-nogpulib", "-I", str(_HEADERS))
    front_end = FrontEnd((str(rpl_require("clang++-22")), *words), path, path, path.parent)
    found = CompilerReading(front_end, source().encode())
    assert not isinstance(found.parsed(), str), found.parsed()
    return found


def _offers(reading):
    made = KernelSource("corpus.hip", source().encode(), reading=reading)
    return {c.kernel: c for one in (LdsPadding(), VectorLoads()) for c in one.propose(made)}


def _names(kind: str, kernels: dict[str, str]) -> dict[str, str]:
    return {f"{kind}{number}": what for number, what in enumerate(kernels)}


def test_hostile_kernels_are_refused_and_harmless_twins_are_offered(reading):
    offers = _offers(reading)
    hostile = _names("ph", PADDING_HOSTILE) | _names("lh", LOADS_HOSTILE)
    harmless = _names("pg", PADDING_HARMLESS) | _names("lg", LOADS_HARMLESS)
    assert len(hostile) >= 24
    assert {
        what: offers[name] for name, what in hostile.items() if name in offers and offers[name].allowed
    } == {}
    refused = {w: offers[n].guards for n, w in harmless.items() if n not in offers or not offers[n].allowed}
    assert refused == {}
    assert all(offers[name].edits == () for name in hostile if name in offers)


def _results(compiler, text: bytes, folder) -> dict[str, str]:
    path, binary = folder / "program.cpp", folder / "program"
    path.write_text(program(text.decode()), encoding="utf-8")
    options = ("-O1", "-w", "-std=c++20", "-fno-strict-aliasing", "-fwrapv")
    subprocess.run([compiler, *options, path, "-o", binary], check=True, capture_output=True)
    done = subprocess.run([binary], check=True, capture_output=True, text=True)
    return dict(zip(texts(), done.stdout.splitlines(), strict=True))


def test_the_edits_that_are_refused_change_results_and_those_that_are_offered_do_not(
    reading, rpl_require, tmp_path
):
    """The proof of the corpus: executed for the CPU, base against edit."""
    compiler, text = rpl_require("clang++-22"), source().encode()
    unasked = _offers(ProvesAnything())
    edited = apply_edits(text, [edit for one in unasked.values() for edit in one.edits])
    before, after = (_results(compiler, version, tmp_path) for version in (text, edited))
    changed = {name for name in texts() if before[name] != after[name]}
    assert {name for name in changed if name[1] == "g"} == set(), "harmless twins"
    hostile = {name for name in texts() if name[1] == "h"}
    assert hostile - changed == set(), "each of them is a proof"
    offered = [one for one in _offers(reading).values() if one.allowed]
    edited = apply_edits(text, [edit for one in offered for edit in one.edits])
    assert _results(compiler, edited, tmp_path) == before
