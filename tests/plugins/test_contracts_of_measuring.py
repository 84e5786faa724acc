"""Contract checks of collectors, analyzers, renderers and doctor checks: each misdeed is caught."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rpl_core.errors import MissingError
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer, Fact, Facts
from rpl_core.interfaces.collector import CollectionPlan, Collector, PlannedPass
from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus
from rpl_core.interfaces.section import Renderer, RenderRequest
from rpl_core.model.recording import Recording
from rpl_core.model.trace import TraceRole
from rpl_testkit import contracts
from rpl_testkit.contracts import ContractViolation


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


class OneRunForAll(OneRunOnly):
    deterministic = True


class AlikeTwice(GoodCollector):
    deterministic = True


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


@pytest.mark.parametrize("collector", [GoodCollector(), AskingForAVersion(), OneRunForAll()])
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
        (AlikeTwice(), "1 timing run asked for, 2 planned"),
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


TIMES: Fact[tuple[int, ...]] = Fact("times", tuple)
TOTAL: Fact[int] = Fact("total", int)
COLUMN: Fact[np.ndarray] = Fact("column", np.ndarray)
CONTEXT = AnalysisContext(Recording(traces=()), None, facts=Facts({TIMES: (1, 2, 3)}))


class GoodAnalyzer(Analyzer):
    name, summary = "sum", "Adds up."
    requires, provides = frozenset({TIMES}), frozenset({TOTAL, COLUMN})

    def analyze(self, context):
        column = np.array(context.facts[TIMES])
        return AnalysisOutcome({TOTAL: int(column.sum()), COLUMN: column})


class Forgetful(GoodAnalyzer):
    def analyze(self, context):
        return AnalysisOutcome({TOTAL: 6})


class Fickle(GoodAnalyzer):
    def analyze(self, context):
        return AnalysisOutcome({TOTAL: 6, COLUMN: np.array([time.monotonic_ns()])})


class Curious(GoodAnalyzer):
    def analyze(self, context):
        Path(__file__).read_text()
        return super().analyze(context)


class Delegating(GoodAnalyzer):
    def analyze(self, context):
        subprocess.run(["true"], check=True)
        return super().analyze(context)


class Online(GoodAnalyzer):
    def analyze(self, context):
        socket.socket().close()
        return super().analyze(context)


class Mistyped(GoodAnalyzer):
    def analyze(self, context):
        return AnalysisOutcome({TOTAL: "6", COLUMN: np.array([1])})


class Greedy(GoodAnalyzer):
    requires = frozenset({TIMES, TOTAL})


def test_a_good_analyzer_passes():
    contracts.assert_analyzer(GoodAnalyzer(), CONTEXT)


@pytest.mark.parametrize(
    ("analyzer", "message"),
    [
        (Forgetful(), "returned \\['total'\\]"),
        (Fickle(), "two different results"),
        (Curious(), "opens a file"),
        (Delegating(), "runs a program|opens a file"),
        (Online(), "uses the network"),
        (Mistyped(), "'total' is int, not str"),
        (Greedy(), "requires what it provides"),
    ],
)
def test_a_bad_analyzer_fails(analyzer, message):
    with pytest.raises(ContractViolation, match=message):
        contracts.assert_analyzer(analyzer, CONTEXT)


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
