"""Proposers that do what they like: the stage keeps its bounds, and its ledger stays true."""

from __future__ import annotations

import pytest

from rpl_core.errors import PluginError
from rpl_core.plugins.host import Contribution
from rpl_optimize.contracts import GuardPart
from rpl_optimize.interfaces.builder import BuildFailure
from rpl_optimize.interfaces.proposer import InstalledTransformation, ProposalRequest, Proposer
from rpl_optimize.interfaces.transformation import (
    Edit,
    EditCandidate,
    GuardVerdict,
    KernelSource,
    Transformation,
)
from rpl_optimize.loop.proposing import ProposalStage

SOURCE = b"__global__ void k() {}\n"


def candidate(number: int, **changes: object) -> EditCandidate:
    usual = {
        "id": f"c{number}",
        "kernel": "k",
        "line": 1,
        "summary": f"version {number}",
        "edits": (Edit(0, 0, b"// %d\n" % number),),
        "guards": (GuardVerdict("g", True, f"looked at version {number}"),),
    }
    return EditCandidate(**{**usual, **changes})


class Endless(Proposer):
    """Always has another repair."""

    name = "endless"
    summary = "for tests"

    def __init__(self) -> None:
        self.asked = 0

    def propose(self, request: ProposalRequest) -> EditCandidate | None:
        return candidate(0)

    def repair(self, request: ProposalRequest, failed: EditCandidate, problem: str) -> EditCandidate | None:
        self.asked += 1
        return candidate(self.asked)


class Junk(Proposer):
    name = "junk"
    summary = "for tests"

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def propose(self, request: ProposalRequest) -> EditCandidate | None:
        return self.answer


class NeverBuilds:
    summary = "fails"
    keep_command = False

    def build(self, text, directory, original=None):
        return BuildFailure(commands=(("cc",),), reason=text.decode().splitlines()[0], log=None, wall_s=0.0)


@pytest.fixture
def stage(tmp_path):
    """The stage around a proposer, and what it wrote down: (event, version)."""

    def make(proposer):
        heard = []
        return heard, ProposalStage(
            Contribution("plugin", proposer),
            NeverBuilds(),
            tmp_path,
            SOURCE,
            lambda text, _declared: (
                GuardPart(guard="outside", passed=text.endswith(SOURCE), reason="the end of the file"),
            ),
            lambda proposed: heard.append(("proposed", proposed.repairs)),
            lambda proposed, _part: heard.append(("built", proposed.repairs)),
        )

    return make


def request(*transformations: Transformation, note=lambda line: None) -> ProposalRequest:
    offered = tuple(InstalledTransformation(f"of {t.name}", t) for t in transformations)
    source = KernelSource("k.hip", SOURCE, "k")
    return ProposalRequest(source=source, documents={}, transformations=offered, note=note)


REQUEST = request()


def test_a_proposer_does_not_vouch_for_itself_alone(stage) -> None:
    lying = candidate(0, edits=(Edit(0, len(SOURCE), b"int main() {}"),))
    heard, stage_of_liar = stage(Junk(lying))
    built = stage_of_liar.run(REQUEST, 1)
    assert built.proposed.refused == "guard outside: the end of the file"
    assert heard == [("proposed", 0)], "and nothing was built"


def test_what_is_judged_is_the_version_that_was_written_down_last(stage) -> None:
    proposer = Endless()
    heard, endless = stage(proposer)
    built = endless.run(REQUEST, 1)
    assert proposer.asked == 5
    assert heard[-2:] == [("proposed", 5), ("built", 5)]
    assert built.proposed.repairs == 5
    assert built.part.problem == "// 5"


@pytest.mark.parametrize(
    "answer",
    [
        "edit it",
        candidate(0, guards=("fine",)),
        candidate(0, guards=None),
        candidate(0, edits=("all",)),
        candidate(0, edits=(Edit(0, 0, "text"),)),
        candidate(0, summary=7),
        candidate(0, changes_loop="yes"),
        candidate(0, guards=(GuardVerdict("g", "maybe", "so"),)),
    ],
)
def test_junk_is_the_fault_of_its_plugin(stage, answer) -> None:
    _, junk = stage(Junk(answer))
    with pytest.raises(PluginError, match="proposer junk"):
        junk.run(REQUEST, 1)
