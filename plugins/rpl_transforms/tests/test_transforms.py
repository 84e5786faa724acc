"""What each transformation proposes and refuses, that the compiler takes it, and that facts order them."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import rpl_testkit
from rpl_analysis.interfaces import Rule
from rpl_optimize.interfaces.proposer import InstalledTransformation, ProposalRequest
from rpl_optimize.interfaces.transformation import EditCandidate, KernelSource, ResizedArray, Transformation
from rpl_optimize.ranked import RankedProposer
from rpl_optimize.source_meaning.front_end import FrontEnd
from rpl_optimize.source_meaning.judge import MeaningJudge
from rpl_optimize.source_meaning.reading import CompilerReading
from rpl_optimize.transform import apply_edits
from rpl_testkit.contracts import assert_transformation
from rpl_transforms.plugin import kernels_of, rpl_classifier_rules, rpl_transformations

PROGRAM = b"""#include <hip/hip_runtime.h>
constexpr int kThreads = 256;

__global__ void blur(const float *in, float *out, int n) {
    __shared__ float tile[32][32];
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    float a = in[i];
    float b = in[i + 1];
    float c = in[i + 2];
    float d = in[i + 3];
    tile[threadIdx.x / 32][threadIdx.x % 32] = a + b;
    __syncthreads();
    if (i < n) out[i] = tile[threadIdx.x % 32][threadIdx.x / 32] + c + d;
}

int main() {
    float *in = nullptr, *out = nullptr;
    blur<<<1, kThreads>>>(in, out, 1024);
    return hipDeviceSynchronize();
}
"""
NAMES = ("threads-per-block", "restrict", "vector-loads", "lds-padding")


def transformations(**settings: object) -> dict[str, Transformation]:
    config = {f"plugins.transforms.{name}": value for name, value in settings.items()}
    offered = {one.name: one for one in rpl_transformations(config)}
    return {name: offered[name] for name in NAMES}


def all_distinct() -> dict[str, Transformation]:
    return transformations(**{"distinct-pointers": ["*"]})


@cache
def reading(text: bytes, *options: str) -> CompilerReading:
    """Clang's reading of a program, with the stand-in's headers."""
    folder = Path(tempfile.mkdtemp(prefix="rpl-transforms-"))
    headers = Path(rpl_testkit.__file__).parent / "hipcc_standin" / "include"
    words = ("-x", "hip", "--offload-arch=gfx942", *options, "-nogpuinc", "-nogpulib", "-I", str(headers))
    source = folder / "a.hip"
    source.write_bytes(text)
    return CompilerReading(FrontEnd(("clang++-22", *words), source, source, folder), text)


def read(text: bytes = PROGRAM) -> KernelSource:
    return KernelSource("a.hip", text, "blur", reading=reading(text))


def proposed(name: str, text: bytes = PROGRAM) -> EditCandidate:
    (candidate,) = all_distinct()[name].propose(read(text))
    return candidate


def refusals(candidate: EditCandidate) -> set[str]:
    return {guard.guard for guard in candidate.guards if not guard.passed}


@pytest.mark.parametrize("name", NAMES)
def test_they_keep_the_contract(name: str) -> None:
    assert_transformation(all_distinct()[name], read())


@pytest.fixture(autouse=True)
def _compiler(rpl_require) -> None:
    rpl_require("clang++-22")


@pytest.fixture
def judge() -> MeaningJudge:
    return MeaningJudge(reading(PROGRAM).front_end, PROGRAM)


@pytest.mark.parametrize(
    ("name", "inserted"),
    [
        ("threads-per-block", b"void __launch_bounds__(256) blur("),
        ("restrict", b"(const float *__restrict__ in, float *__restrict__ out, int n)"),
        ("vector-loads", b"float d = rpl_in_7.rpl_at[3];"),
        ("lds-padding", b"tile[32][32 + 1];"),
    ],
)
def test_the_compiler_reads_nothing_else_in_it(judge: MeaningJudge, name: str, inserted: bytes) -> None:
    candidate = proposed(name)
    assert candidate.allowed
    after = apply_edits(PROGRAM, candidate.edits)
    assert inserted in after
    meaning = judge.judge(after, candidate.declares)
    assert meaning.passed, meaning.verdicts


@pytest.mark.parametrize(
    ("name", "old", "new", "guard"),
    [
        ("threads-per-block", b"kThreads>>>", b"n>>>", "block-size-known"),
        ("threads-per-block", b"constexpr int kThreads", b"int kThreads", "block-size-known"),
        ("threads-per-block", b"int main()", b"int helper()", "launched-here-only"),
        ("threads-per-block", b"    blur<<<", b"    auto f = &blur;\n    blur<<<", "launched-here-only"),
        ("lds-padding", b"__syncthreads();", b"float *row = tile[0]; row[33] = 0;", "used-by-element"),
        ("lds-padding", b"__syncthreads();", b"float *one = &tile[0][0]; one[33] = 0;", "used-by-element"),
        ("lds-padding", b"tile[32][32];", b"tile[512][32];", "fits-shared-memory"),
    ],
)
def test_what_is_doubtful_is_refused(name: str, old: bytes, new: bytes, guard: str) -> None:
    assert old in PROGRAM
    assert guard in refusals(proposed(name, PROGRAM.replace(old, new)))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("threads-per-block", b"void blur", b"void __launch_bounds__(64) blur"),
        ("threads-per-block", b"kThreads = 256", b"kThreads = 1024"),
        ("lds-padding", b"tile[32][32];", b"tile[32][33];"),
        ("vector-loads", b"const float *in", b"float *in"),
        ("vector-loads", b"const float *in", b"const volatile float *in"),
        ("vector-loads", b"float c = in[i + 2];", b"out[i] = 0; float c = in[i + 2];"),
        ("vector-loads", b"in[i + 3]", b"in[i + 4]"),
        ("restrict", b"(const float *in, float *out", b"(float *__restrict__ in, float *__restrict__ out"),
    ],
)
def test_where_there_is_nothing_to_mend_nothing_is_proposed(name: str, old: bytes, new: bytes) -> None:
    assert old in PROGRAM
    assert all_distinct()[name].propose(read(PROGRAM.replace(old, new))) == ()


def test_what_the_launches_prove_is_restricted_without_asking(judge: MeaningJudge) -> None:
    """What is stored to keeps its type, as work-items wait for each other."""
    (found,) = transformations()["restrict"].propose(read())
    assert found.allowed, found.guards
    after = apply_edits(PROGRAM, found.edits)
    assert b"blur(const float *__restrict__ in, float *out, int n)" in after
    assert judge.judge(after, found.declares).passed
    (aliased,) = transformations()["restrict"].propose(
        read(PROGRAM.replace(b"kThreads>>>(in, out", b"kThreads>>>(out, out"))
    )
    assert (refusals(aliased), aliased.edits) == ({"distinct-pointers"}, ())
    (library,) = transformations()["restrict"].propose(read(PROGRAM.replace(b"int main", b"int run")))
    assert (refusals(library), library.edits) == ({"distinct-pointers"}, ())


def test_without_a_proof_pointers_are_restricted_by_the_users_word_only() -> None:
    source = KernelSource("a.hip", PROGRAM)
    (silent,) = transformations()["restrict"].propose(source)
    assert refusals(silent) == {"distinct-pointers"}
    assert silent.edits == ()
    assert kernels_of("blur, other") == {"blur", "other"}
    assert kernels_of(["blur"]) == {"blur"}
    assert kernels_of(7) == frozenset()
    (named,) = transformations(**{"distinct-pointers": "blur"})["restrict"].propose(source)
    assert named.allowed


def documents(bottleneck: str, scratch: int, conflicts: float) -> dict[str, Any]:
    condition = {"quantity": "lds_bank_conflicts_per_access", "value": conflicts}
    analysed = {
        "kernel": "blur(float const*, float*, int)",
        "critical_path_score": 0.8,
        "bottleneck": bottleneck,
        "evidence": [{"rule": "lds-bank-conflicts", "conditions": [condition]}],
    }
    profiled = {"name": "blur(float const*, float*, int)", "resources": {"scratch_bytes": scratch}}
    return {"analysis": {"kernels": [analysed]}, "profile": {"kernels": [profiled]}}


@pytest.mark.parametrize(
    ("facts", "first", "most", "fact"),
    [
        (("compute_throughput_limited", 64, 0.0), "promise 256", 0.8, ("scratch_bytes", 64.0)),
        (("compute_throughput_limited", 0, 1.0), "pad each row", 0.4, ("bank_conflicts", 1.0)),
        (("latency_bound", 0, 1.0), "restrict the pointers", 0.8, ("bottleneck", "latency_bound")),
    ],
)
def test_the_order_follows_the_facts(facts, first: str, most: float, fact: tuple[str, object]) -> None:
    offered = tuple(InstalledTransformation("transforms", one) for one in all_distinct().values())
    request = ProposalRequest(read(), documents(*facts), transformations=offered)
    candidate = RankedProposer().propose(request)
    assert candidate is not None
    assert candidate.summary.startswith(first)
    evidence = candidate.evidence
    assert evidence is not None
    assert evidence.expected_gain == (0.0, pytest.approx(most))
    assert evidence.facts["critical_path_score"] == 0.8
    assert evidence.facts[fact[0]] == fact[1]


def test_without_documents_nothing_is_expected() -> None:
    for one in all_distinct().values():
        source = read()
        (found,) = one.evidence(source, one.propose(source), {}).values()
        assert found.expected_gain is None


def test_measured_conflicts_come_into_the_documents_by_a_rule() -> None:
    (rule,) = rpl_classifier_rules()
    assert isinstance(rule, Rule)
    assert rule.conditions[0].quantity == "lds_bank_conflicts_per_access"


@pytest.mark.parametrize("name", ["vector-loads", "lds-padding"])
def test_without_a_compiler_nothing_is_proven_and_nothing_offered(name: str) -> None:
    for without in (None, CompilerReading("no HIP compiler is installed", PROGRAM)):
        source = KernelSource("a.hip", PROGRAM, "blur", reading=without)
        (candidate,) = all_distinct()[name].propose(source)
        assert not candidate.allowed
        assert candidate.edits == ()


_SQUARE = b"tile[threadIdx.y][threadIdx.x] = a; __syncthreads(); out[i] = tile[threadIdx.x][threadIdx.y];"
_LAUNCH = b"blur<<<1, dim3(32, 32)>>>(in, out, 1024);"


@pytest.mark.parametrize(
    ("launch", "offered"),
    [
        (_LAUNCH, True),
        (b"dim3 block(32, 8); blur<<<1, block>>>(in, out, 1024);", True),
        (b"blur<<<1, dim3(64, 8)>>>(in, out, 1024);", False),
        (b"blur<<<1, dim3(in ? 32 : 64, 8)>>>(in, out, 1024);", False),
        (_LAUNCH + b" auto f = blur;", False),
    ],
)
def test_work_items_are_bounded_by_the_launches_of_a_whole_program(launch: bytes, offered: bool) -> None:
    text = PROGRAM.replace(b"__syncthreads();", _SQUARE).replace(b"threadIdx.x / 32]", b"threadIdx.y]")
    text = text.replace(b"threadIdx.x % 32]", b"threadIdx.x]").replace(
        b"blur<<<1, kThreads>>>(in, out, 1024);", launch
    )
    candidate = proposed("lds-padding", text)
    assert candidate.allowed is offered, candidate.guards
    if offered:
        judged = MeaningJudge(reading(text).front_end, text)
        assert judged.judge(apply_edits(text, candidate.edits), candidate.declares).passed


def test_a_strangers_resized_array_is_proven_by_the_judge(judge: MeaningJudge) -> None:
    """Whoever declares the change: the judge asks what the built-in one asks."""
    flat = PROGRAM.replace(b"__syncthreads();", b"__syncthreads(); out[1] = tile[0][i];")
    other = MeaningJudge(reading(flat).front_end, flat)
    for one, text, allowed in ((judge, PROGRAM, True), (other, flat, False)):
        for extent, larger in ((b"[32][40]", True), (b"[32][16]", False), (b"[31][33]", False)):
            meaning = one.judge(text.replace(b"[32][32]", extent), (ResizedArray("tile"),))
            assert meaning.passed is (allowed and larger)
