"""Contract checks of contributions that do something: a good one passes, each misdeed is caught."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rpl_core.errors import BadDataError, MissingError
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOptions, AnalysisOutcome, Analyzer
from rpl_core.interfaces.collector import CollectionPlan, Collector, PlannedPass
from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus
from rpl_core.interfaces.equivalence import (
    EquivalenceCheck,
    EquivalenceReport,
    EquivalenceRequest,
    EquivalenceVerdict,
)
from rpl_core.interfaces.proposer import ProposalRequest, Proposer
from rpl_core.interfaces.renderer import Renderer, RenderRequest
from rpl_core.interfaces.replayer import Replayer, ReplayReport
from rpl_core.interfaces.transformation import Edit, EditCandidate, GuardVerdict, KernelSource, Transformation
from rpl_core.model.origin import Origin
from rpl_core.model.recording import Recording
from rpl_core.model.trace import TraceRole
from rpl_core.testing import contracts
from rpl_core.testing.contracts import ContractViolation


class GoodCollector(Collector):
    name, summary = "good", "Runs it."

    def missing(self):
        return None

    def plan(self, request):
        passes = [
            PlannedPass(f"run-{i}", TraceRole.TIMING, f"passes/{i}", ("profiler", "--", *request.command))
            for i in range(request.runs)
        ]
        return CollectionPlan(tuple(passes))

    def run(self, planned, run_directory, log):
        raise NotImplementedError


class PlanningByRunning(GoodCollector):
    def plan(self, request):
        subprocess.run(request.command, check=False)
        return super().plan(request)


class AskingForAVersion(GoodCollector):
    def plan(self, request):
        subprocess.run([sys.executable, "--version"], check=True, capture_output=True)
        return super().plan(request)


class OneRunOnly(GoodCollector):
    def plan(self, request):
        return CollectionPlan(super().plan(request).passes[:1])


class Escaping(GoodCollector):
    def plan(self, request):
        return CollectionPlan(
            tuple(
                PlannedPass(str(i), TraceRole.TIMING, f"../{i}", request.command) for i in range(request.runs)
            )
        )


class JoiningWords(GoodCollector):
    def plan(self, request):
        line = ("sh", "-c", " ".join(request.command), request.command[0])
        return CollectionPlan(
            tuple(PlannedPass(str(i), TraceRole.TIMING, str(i), line) for i in range(request.runs))
        )


class OnePlace(GoodCollector):
    def plan(self, request):
        command = ("profiler", "-d", "{directory}", "--", *request.command)
        return CollectionPlan(
            tuple(PlannedPass(str(i), TraceRole.TIMING, "out", command) for i in range(request.runs))
        )


class Surprised(GoodCollector):
    def plan(self, request):
        raise MissingError("no profiler")


class EmptyReason(GoodCollector):
    def missing(self):
        return ""


@pytest.mark.parametrize("collector", [GoodCollector(), AskingForAVersion()])
def test_a_good_collector_passes(collector, tmp_path):
    contracts.assert_collector(collector, tmp_path)


def test_a_collector_without_its_tool_passes(tmp_path):
    class Absent(Surprised):
        def missing(self):
            return "install it"

    contracts.assert_collector(Absent(), tmp_path)


@pytest.mark.parametrize(
    ("collector", "message"),
    [
        (PlanningByRunning(), "started the application"),
        (OneRunOnly(), "2 timing runs asked for, 1 planned"),
        (Escaping(), "inside the run directory"),
        (OnePlace(), "write into one directory"),
        (JoiningWords(), "unchanged"),
        (Surprised(), "missing\\(\\) says None"),
        (EmptyReason(), "None or a sentence"),
    ],
)
def test_a_bad_collector_fails(collector, message, tmp_path):
    with pytest.raises(ContractViolation, match=message):
        contracts.assert_collector(collector, tmp_path)


CONTEXT = AnalysisContext(Recording(traces=()), None, AnalysisOptions(), {"times": (1, 2, 3)})


class GoodAnalyzer(Analyzer):
    name, summary = "sum", "Adds up."
    requires, provides = frozenset({"times"}), frozenset({"total", "column"})

    def analyze(self, context):
        column = np.array(context.facts["times"])
        return AnalysisOutcome({"total": int(column.sum()), "column": column})


class Forgetful(GoodAnalyzer):
    def analyze(self, context):
        return AnalysisOutcome({"total": 6})


class Fickle(GoodAnalyzer):
    def analyze(self, context):
        return AnalysisOutcome({"total": 6, "column": np.array([time.monotonic_ns()])})


class Curious(GoodAnalyzer):
    def analyze(self, context):
        Path(__file__).read_text()
        return super().analyze(context)


class Greedy(GoodAnalyzer):
    requires = frozenset({"times", "total"})


def test_a_good_analyzer_passes():
    contracts.assert_analyzer(GoodAnalyzer(), CONTEXT)


@pytest.mark.parametrize(
    ("analyzer", "message"),
    [
        (Forgetful(), "returned \\['total'\\]"),
        (Fickle(), "two different results"),
        (Curious(), "opens a file"),
        (Greedy(), "requires what it provides"),
    ],
)
def test_a_bad_analyzer_fails(analyzer, message):
    with pytest.raises(ContractViolation, match=message):
        contracts.assert_analyzer(analyzer, CONTEXT)


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


class GoodReplayer(Replayer):
    name, summary = "again", "Once more."
    times = (5, 6, 7)

    def missing(self):
        return None

    def replay(self, request):
        if not request.capture.exists():
            raise BadDataError(f"no capture at {request.capture}")
        return ReplayReport(self.times, 0.1, Origin.SYNTHETIC)


def test_a_good_replayer_passes(tmp_path):
    contracts.assert_replayer(GoodReplayer(), tmp_path, capture=tmp_path)


@pytest.mark.parametrize(("times", "message"), [((5,), "three iterations"), ((5, 0, 7), "above 0")])
def test_a_replayer_with_wrong_times_fails(tmp_path, times, message):
    with pytest.raises(ContractViolation, match=message):
        contracts.assert_replayer(type("R", (GoodReplayer,), {"times": times})(), tmp_path, capture=tmp_path)


def test_a_replayer_that_accepts_nothing_fails(tmp_path):
    class Careless(GoodReplayer):
        def replay(self, request):
            return ReplayReport((1,), 0.1, Origin.MEASURED)

    with pytest.raises(ContractViolation, match="missing capture"):
        contracts.assert_replayer(Careless(), tmp_path)


class GoodRenderer(Renderer):
    name, summary, suffix = "plain", "Plain text.", ".txt"
    text = "hello\n"

    def render(self, request):
        return self.text


def test_a_good_renderer_passes():
    contracts.assert_renderer(GoodRenderer(), RenderRequest({}))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"text": "\x1b[31mred"}, "terminal escape"),
        ({"text": ""}, "empty"),
        ({"suffix": "txt"}, "begins with a dot"),
        ({"render": lambda self, request: str(time.monotonic_ns())}, "two different outputs"),
    ],
)
def test_a_bad_renderer_fails(attributes, message):
    with pytest.raises(ContractViolation, match=message):
        contracts.assert_renderer(type("R", (GoodRenderer,), attributes)(), RenderRequest({}))


class GoodDoctorCheck(DoctorCheck):
    name, summary = "disk", "Is there a disk?"
    report = DoctorReport(DoctorStatus.OK, "there is one")

    def check(self):
        return self.report


def test_a_good_doctor_check_passes():
    contracts.assert_doctor_check(GoodDoctorCheck())


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (DoctorReport(DoctorStatus.MISSING, "none", "runs"), "remedy"),
        (DoctorReport(DoctorStatus.MISSING, "none", remedy="buy one"), "needed for"),
        (DoctorReport(DoctorStatus.OK, " "), "fact"),
        ("all fine", "DoctorReport"),
    ],
)
def test_a_bad_doctor_check_fails(report, message):
    check = type("C", (GoodDoctorCheck,), {"report": report})()
    with pytest.raises(ContractViolation, match=message):
        contracts.assert_doctor_check(check)
