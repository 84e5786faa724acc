"""The order of proposals follows the documents; what was tried or screened out is not proposed again."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from rpl_core.model.device import Architecture
from rpl_llm_unroll.proposers import DeterministicProposer
from rpl_optimize.interfaces.proposer import Attempt, ProposalRequest
from rpl_optimize.interfaces.transformation import GuardVerdict, KernelSource, LoopHints, Screening
from rpl_optimize.transform import apply_edits
from rpl_transforms.resource_screen import ResourceScreen, ScreenOfSource
from rpl_transforms.unroll import Unroll, kernel_evidence

_TEXT = b"""__global__ void light(float* out, const float* in, int n) {
  for (int i = 0; i < n; ++i) out[0] += in[i];
}
__global__ void heavy(float* out, const float* in, int n) {
  for (int i = 0; i < n; ++i) out[0] += in[i];
  for (int j = 0; j < n; ++j) {
    for (int k = 0; k < n; ++k) out[j] += in[k];
  }
}
"""


def _request(label: str = "latency_bound", attempts: tuple[Attempt, ...] = (), kernel: str | None = None):
    kernels = [
        {"kernel": "light(float*, float const*, int)", "critical_path_score": 0.1, "bottleneck": label},
        {"kernel": "heavy(float*, float const*, int)", "critical_path_score": 0.8, "bottleneck": label},
    ]
    documents = {"analysis": {"kernels": kernels}, "profile": {"gpu": {"architecture": "gfx942"}}}
    return ProposalRequest(KernelSource("k.hip", _TEXT, kernel), documents, attempts)


def _screened(screen: object) -> DeterministicProposer:
    return DeterministicProposer(Unroll(ScreenOfSource(lambda source, architecture: screen)))


def _unscreened() -> DeterministicProposer:
    return _screened("no compiler in this test")


@pytest.mark.parametrize(
    ("label", "first"),
    [
        ("latency_bound", "heavy-L7-pragma8"),
        ("under_occupied", "heavy-L7-pragma2"),
        ("unclassified", "heavy-L7-pragma4"),
    ],
)
def test_the_heaviest_kernels_deepest_loop_comes_first(label, first):
    assert _unscreened().propose(_request(label)).id == first


def test_after_an_accepted_factor_the_others_of_its_loop_are_tried():
    request = _request(kernel="heavy")
    unroll = Unroll(ScreenOfSource(lambda source, architecture: "no compiler in this test"))
    loop = "heavy-L7-pragma"
    (four,) = [one for one in unroll.propose(request.source) if one.id == f"{loop}4"]
    accepted = attrs.evolve(request.source, text=apply_edits(_TEXT, four.edits))
    offered = {one.id: one for one in unroll.propose(accepted) if one.id.startswith(loop)}
    assert set(offered) == {f"{loop}2", f"{loop}8"}
    eight = apply_edits(accepted.text, offered[f"{loop}8"].edits)
    assert eight == accepted.text.replace(b"unroll 4", b"unroll 8")
    assert offered[f"{loop}8"].declares == (LoopHints(0),)
    tried = attrs.evolve(request, source=accepted, attempts=(Attempt(four.summary, "accepted", ""),))
    assert DeterministicProposer(unroll).propose(tried).id == f"{loop}8"


def _all_proposals(kernel: str | None = None) -> list[str]:
    attempts: tuple[Attempt, ...] = ()
    seen = []
    while (candidate := _unscreened().propose(_request(attempts=attempts, kernel=kernel))) is not None:
        seen.append(candidate.id)
        attempts = (*attempts, Attempt(candidate.summary, "rejected", "slower"))
    return seen


def test_what_was_tried_is_not_proposed_again_until_nothing_is_left():
    seen = _all_proposals()
    assert len(seen) == len(set(seen)) == 3 * 3  # loops, factors
    kernels = [name.split("-")[0] for name in seen]
    # One turn per loop, of the kernel with the larger part of the path first, then the other factors of each.
    assert kernels == [*["heavy"] * 2, "light", *["heavy"] * 4, *["light"] * 2]


def test_the_loop_that_a_thread_trace_saw_waiting_comes_first():
    request = _request()
    hot = [{"source": "/build/k.hip:5", "latency": 900}, {"source": "/build/k.hip:7", "latency": 40}]
    profile = {"kernels": [{"name": "heavy(float*, float const*, int)", "att": {"hot_lines": hot}}]}
    traced = ProposalRequest(request.source, {**request.documents, "profile": profile})
    assert _unscreened().propose(traced).id == "heavy-L5-pragma8"
    elsewhere = [{**row, "source": row["source"].replace("k.hip", "other.hip")} for row in hot]
    profile["kernels"][0]["att"]["hot_lines"] = elsewhere
    assert _unscreened().propose(traced).id == "heavy-L7-pragma8"


def test_a_named_kernel_limits_the_proposals():
    assert {name.split("-")[0] for name in _all_proposals("light")} == {"light"}


def test_a_candidate_that_the_screen_refuses_is_not_proposed():
    class NoFactorEight:
        def screen(self, candidate: bytes, *, for_waves: bool) -> Screening:
            return Screening((GuardVerdict("binary-spills", b"unroll 8" not in candidate, "spills"),))

    assert _screened(NoFactorEight()).propose(_request()).id == "heavy-L7-pragma4"


def test_when_nothing_is_left_the_user_hears_why_and_hears_it_once():
    text = b"""__global__ void sync(float* out, int n) {
  for (int i = 0; i < n; ++i) { out[i] = 1; __syncthreads(); }
}
__global__ void plain(float* out) { out[0] = 1; }
"""
    notes: list[str] = []
    proposer = _unscreened()
    for kernel in ("sync", "sync", "plain"):
        request = ProposalRequest(KernelSource("k.hip", text, kernel), {}, note=notes.append)
        assert proposer.propose(request) is None
    assert notes == [
        "deterministic: nothing to try for sync:",
        "  unroll for loop sync-L2: guard barrier, line 2: policy: __syncthreads waits at a barrier",
        "deterministic: nothing to change in plain (unroll)",
    ]


def test_the_user_hears_what_the_screen_refused_or_that_there_was_none():
    class Nothing:
        def screen(self, candidate: bytes, *, for_waves: bool) -> Screening:
            return Screening((GuardVerdict("binary-spills", False, "spills 4"),))

    notes: list[str] = []
    request = attrs.evolve(_request(kernel="heavy"), note=notes.append)
    assert _screened(Nothing()).propose(request) is None
    assert notes[:2] == [
        "plan for heavy, in turns:",
        "  unroll: 2 places (6 ways); may gain up to 80.0% of the time",
    ]
    assert notes[2] == "deterministic: nothing to try for heavy:"
    assert "by 8: guard binary-spills, line 7: spills 4" in "\n".join(notes)
    assert notes[-1].startswith("  and 2 more; `rpl transform`")
    notes.clear()
    assert _unscreened().propose(request) is not None
    assert notes[2:] == ["deterministic: candidates of unroll are not screened: no compiler in this test"]


def test_candidates_are_compiled_for_the_instruction_set_and_not_for_the_name_of_the_device():
    asked: list[str | None] = []
    unroll = Unroll(
        ScreenOfSource(lambda source, architecture: asked.append(architecture) or "no compiler in this test")
    )
    documents = {"profile": {"gpu": {"architecture": "gfx942-emu"}}}
    source = KernelSource("k.hip", _TEXT)
    (candidate, *_) = unroll.propose(source)
    unroll.screen(attrs.evolve(source, architecture=Architecture(name="gfx942")), candidate, documents)
    unroll.screen(source, candidate, documents)
    assert asked == ["gfx942", "gfx942-emu"]


def test_what_was_tried_is_not_compiled_again():
    compiled: list[bytes] = []

    class Counting:
        def screen(self, candidate: bytes, *, for_waves: bool) -> Screening:
            compiled.append(candidate)
            return Screening(())

    proposer = _screened(Counting())
    first = proposer.propose(_request())
    proposer.propose(_request(attempts=(Attempt(first.summary, "rejected", "slower"),)))
    assert len(compiled) == len(set(compiled)) == 2


@pytest.mark.clang
def test_the_screen_refuses_what_the_compiler_can_only_do_with_spills(gfx942):
    text = (
        Path(__file__).parents[2] / "rpl_transforms" / "tests" / "sources" / "spills_when_unrolled.hip"
    ).read_bytes()
    source = KernelSource("k.hip", text)
    unroll = Unroll(ScreenOfSource(lambda source, architecture: ResourceScreen(gfx942, source.text)))
    (candidate,) = [c for c in unroll.propose(source) if c.id == "wide-L12-pragma8"]
    screening = unroll.screen(source, candidate, {"profile": {"gpu": {"architecture": "gfx942"}}})
    refused = {guard.guard for guard in screening.verdicts if not guard.passed}
    assert refused & {"binary-spills", "binary-scratch", "binary-occupancy"}, screening


@pytest.mark.parametrize(
    ("recorded", "found"),
    [
        ("heavy", True),
        ("heavy.kd", True),
        ("void heavy<float, 4>(float*)", True),
        ("ns::heavy(float*)", True),
        ("_Z5heavyPfPKfi", True),
        ("_Z15heavy", False),
        ("heavyweight(float*)", False),
        ("light(heavy*)", False),
    ],
)
def test_recorded_names_are_matched_as_whole_names(recorded, found):
    documents = {"analysis": {"kernels": [{"kernel": recorded, "critical_path_score": 0.5}]}}
    assert (kernel_evidence(documents, "heavy").score is not None) is found
