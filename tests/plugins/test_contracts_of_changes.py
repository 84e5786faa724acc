"""Contract checks of what the optimizer uses: transformations, proposers and equivalence checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpl_optimize.interfaces.equivalence import (
    EquivalenceCheck,
    EquivalenceReport,
    EquivalenceRequest,
    EquivalenceVerdict,
)
from rpl_optimize.interfaces.proposer import ProposalRequest, Proposer
from rpl_optimize.interfaces.transformation import (
    Edit,
    EditCandidate,
    GuardVerdict,
    KernelSource,
    Transformation,
)
from rpl_testkit import contracts
from rpl_testkit.contracts import ContractViolation

SOURCE = KernelSource("k.hip", b"line one\nline two\n")


class GoodTransformation(Transformation):
    name, summary = "caps", "Writes numbers in capitals."
    edits = (Edit(5, 8, b"ONE"),)
    id = "caps-1"
    line = 1
    guards = (GuardVerdict("style", passed=True, reason=""),)

    def propose(self, source):
        if b"one" not in source.text or source.kernel not in {None, "k"}:
            return ()
        return (EditCandidate(self.id, "k", self.line, "capital one", self.edits, self.guards),)


def changed(**attributes):
    return type("Changed", (GoodTransformation,), attributes)()


class Choking(GoodTransformation):
    def propose(self, source):
        return (*super().propose(source), *[None for _ in source.text.decode("utf-8")][:0])


class Reading(GoodTransformation):
    def propose(self, source):
        Path(__file__).read_bytes()
        return super().propose(source)


class Deaf(GoodTransformation):
    def propose(self, source):
        return GoodTransformation.propose(self, KernelSource(source.path, source.text))


def test_a_good_transformation_passes():
    contracts.assert_transformation(GoodTransformation(), SOURCE)


@pytest.mark.parametrize(
    ("transformation", "message"),
    [
        (changed(edits=(Edit(5, 99, b""),)), "leaves the file"),
        (changed(edits=(Edit(5, 8, b"ONE"), Edit(7, 9, b"x"))), "overlaps"),
        (changed(edits=(Edit(5, 5, b"a"), Edit(5, 5, b"b"))), "overlaps"),
        (changed(edits=(Edit(5, 8, b"one"),)), "changes nothing"),
        (changed(edits=()), "has edits"),
        (changed(line=4), "not in the file"),
        (changed(guards=(GuardVerdict("g", passed=False, reason=""),)), "without reason"),
        (changed(suffixes=("hip",)), "begins with a dot"),
        (Choking(), "propose\\(\\) raised"),
        (Reading(), "opens a file"),
        (Deaf(), "was asked for|does not exist"),
    ],
)
def test_a_bad_transformation_fails(transformation, message):
    with pytest.raises(ContractViolation, match=message):
        contracts.assert_transformation(transformation, SOURCE)


class WithControls(GoodTransformation):
    made = (("empty", b""), ("broken", b"1"))
    kernel = "k"

    def controls(self, source):
        if b"one" not in source.text or source.kernel != "k":
            return ()
        return tuple(
            EditCandidate(name, self.kernel, 1, "wrong", (Edit(5, 8, text),)) for name, text in self.made
        )


class Careless(WithControls):
    def controls(self, source):
        return WithControls.controls(self, KernelSource(source.path, SOURCE.text, "k"))


class Failing(WithControls):
    def controls(self, source):
        raise ValueError(source.text)


# "k" has to stay in the text of a control.
NAMED = KernelSource("k.hip", b"line one k\nline two\n")


def test_a_transformation_with_good_controls_passes():
    contracts.assert_transformation(WithControls(), NAMED)


def with_controls(**attributes):
    return type("Changed", (WithControls,), attributes)()


@pytest.mark.parametrize(
    ("transformation", "message"),
    [
        (with_controls(made=(("wrong", b"1"),)), "controls are empty and broken"),
        (with_controls(made=(("empty", b"1"), ("empty", b"2"))), "controls are empty and broken"),
        (with_controls(made=(("empty", b"1"), ("broken", b"1"))), "same program"),
        (with_controls(made=(("empty", b"one"),)), "changes nothing"),
        (with_controls(kernel="other"), "was asked for"),
        (Careless(), "leaves the file|lost kernel|does not exist"),
        (Failing(), "controls\\(\\) raised"),
    ],
)
def test_bad_controls_fail(transformation, message):
    with pytest.raises(ContractViolation, match=message):
        contracts.assert_transformation(transformation, NAMED)


class GoodProposer(Proposer):
    name, summary = "first", "Takes the first."

    def propose(self, request):
        return GoodTransformation().propose(request.source)[0]


class Rambling(GoodProposer):
    count = 0

    def propose(self, request):
        self.count += 1
        return changed(id=f"try-{self.count}").propose(request.source)[0]


def test_a_good_proposer_passes():
    contracts.assert_proposer(GoodProposer(), ProposalRequest(SOURCE, {}))


def test_a_proposer_that_asks_a_model_may_vary():
    contracts.assert_proposer(Rambling(), ProposalRequest(SOURCE, {}), deterministic=False)


def test_a_bad_proposer_fails():
    with pytest.raises(ContractViolation, match="two different proposals"):
        contracts.assert_proposer(Rambling(), ProposalRequest(SOURCE, {}))


class GoodCheck(EquivalenceCheck):
    name, summary = "files", "Compares out.txt."
    unknown = EquivalenceVerdict.NOT_RUN
    different = EquivalenceVerdict.DIFFERENT

    def check(self, request):
        files = [f / "out.txt" for f in (request.baseline_directory, request.candidate_directory)]
        if not all(file.is_file() for file in files):
            return EquivalenceReport(self.unknown, "no out.txt")
        same = files[0].read_bytes() == files[1].read_bytes()
        return EquivalenceReport(EquivalenceVerdict.EQUAL if same else self.different, "bytes compared")


@pytest.fixture
def two_builds(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "out.txt").write_text(name)
    return EquivalenceRequest(tmp_path / "a", tmp_path / "b", ("./app",))


def test_a_good_equivalence_check_passes(tmp_path, two_builds):
    contracts.assert_equivalence_check(GoodCheck(), tmp_path, different=two_builds)


@pytest.mark.parametrize(
    ("attribute", "message"), [("unknown", "not_run"), ("different", "two different programs equal")]
)
def test_a_check_that_says_equal_too_easily_fails(tmp_path, two_builds, attribute, message):
    check = type("Easy", (GoodCheck,), {attribute: EquivalenceVerdict.EQUAL})()
    with pytest.raises(ContractViolation, match=message):
        contracts.assert_equivalence_check(check, tmp_path, different=two_builds)
