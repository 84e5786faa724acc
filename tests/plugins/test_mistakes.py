"""Every mistake of a plugin costs only that plugin and names it.

Each case is a plugin "careless" with one mistake, beside all that is installed. The command ends with a
documented exit code, its message or a diagnostic names the plugin, and what others give is there.
"""

from __future__ import annotations

import json

import attrs
import pytest

IMPORTS = """
import attrs
import numpy as np
from pathlib import Path
from pydantic import BaseModel
from rpl_core.errors import BadDataError, UsageError
from rpl_core.interfaces.analyzer import AnalysisOutcome, Analyzer
from rpl_core.interfaces.collector import CollectionPlan, Collector, PassOutcome, PlannedPass
from rpl_core.interfaces.doctor import DoctorCheck, DoctorReport, DoctorStatus
from rpl_core.interfaces.document import DocumentKind, DocumentSection
from rpl_report.interfaces import Exporter
from rpl_core.interfaces.analyzer import AppFigure, Fact, KernelFigure
from rpl_core.interfaces.options import CommandOption
from rpl_core.interfaces.reader import InputSet, Reader
from rpl_core.interfaces.section import Renderer
from rpl_analysis.interfaces import Comparison, Condition, Rule
from rpl_core.interfaces.section import Paragraph, ReportSection, Table
from rpl_core.model.device import Architecture, CeilingOrigin, ComputeCeiling, MemoryCeiling, Pipe
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.metric import Exactness, Metric
from rpl_core.model.trace import TraceRole

CONDITION = Condition("l2_hit_rate", Comparison.BELOW, 2.0, "chosen")
COUNT = Fact("careless_count", int)
BAD = Fact("careless_facts", dict, published=True)
"""

_REGISTER = "@hookimpl\ndef {hook}({arguments}):\n    return {answer}\n"


@attrs.frozen
class Mistake:
    """``source`` of the plugin, ``says``: what the message holds beside the plugin's name."""

    source: str
    says: str = ""
    command: tuple[str, ...] = ("analyze", "{recording}", "--device", "gfx942", "-o", "{out}")
    code: int = 0


def gives(
    hook: str, answer: str, says: str = "", *, before: str = "", arguments: str = "", **more
) -> Mistake:
    return Mistake(
        before + "\n" + _REGISTER.format(hook=hook, answer=answer, arguments=arguments), says, **more
    )


def analyzer(body: str, says: str = "", *, provides: str = "frozenset({COUNT})", extra: str = "") -> Mistake:
    source = (
        "class Counting(Analyzer):\n"
        "    name, summary = 'counting', 'counts'\n"
        f"    provides = {provides}\n{extra}"
        f"    def analyze(self, context):\n        {body}\n"
    )
    return gives("rpl_analyzers", "(Counting(),)", says, before=source)


def rule(answer: str, says: str = "", **more) -> Mistake:
    return gives("rpl_classifier_rules", f"({answer},)", says, **more)


def section(body: str, says: str = "") -> Mistake:
    source = (
        "class Own(BaseModel):\n    n: int\n\n\nclass Other(BaseModel):\n    n: int\n\n\n"
        "class Part(DocumentSection):\n"
        "    name, summary, document, field = 'part', 'part', 'profile', 'part'\n"
        "    def model(self):\n        return Own\n"
        f"    def draft(self, context):\n        {body}\n"
    )
    return gives("rpl_documents", "(Part(),)", says, before=source)


def report_section(body: str, says: str = "") -> Mistake:
    source = (
        "class Told(ReportSection):\n    name, summary, title = 'told', 'told', 'Told'\n"
        f"    def blocks(self, request):\n        {body}\n"
    )
    return gives("rpl_report_sections", "(Told(),)", says, before=source)


def section_at(field: str, answer: str, model: str, says: str = "") -> Mistake:
    """A section of ``profile`` in a field of that name, with fields of that ``model``."""
    source = section(f"return {answer}", says).source.replace("'part'\n", f"'{field}'\n", 1)
    return Mistake(
        source.replace("class Own(BaseModel):\n    n: int\n", f"class Own(BaseModel):\n    {model}\n"), says
    )


def document(body: str, says: str = "", *, shape: str = "{'type': 'model-fields', 'fields': {}}") -> Mistake:
    source = (
        "class Sheet(DocumentKind):\n    name, summary = 'sheet', 'a sheet'\n"
        "    def model(self):\n        return BaseModel\n"
        f"    def shape(self):\n        return {shape}\n"
        f"    def draft(self, context):\n        {body}\n"
    )
    return gives("rpl_documents", "(Sheet(),)", says, before=source)


def reader(claim: str, read: str, says: str = "", **more) -> Mistake:
    source = (
        "class Own(Reader):\n    name, summary, priority = 'own', 'own files', 1000\n"
        f"    def claim(self, files):\n        {claim}\n"
        f"    def read(self, inputs):\n        {read}\n"
    )
    more.setdefault("command", ("analyze", "{folder}", "-o", "{out}"))
    return gives("rpl_readers", "(Own(),)", says, before=source, **more)


OWN = "return [InputSet('own', 'own', (f,)) for f in files if f.suffix == '.own']"


def trace(change: str, says: str = "") -> Mistake:
    """A reader of the file beside the recording whose trace is wrong in one thing."""
    read = (
        "from rpl_testkit.traces import make_trace\n"
        "        trace = make_trace([('mine', 0, 1000), ('mine', 2000, 3000)])\n"
        "        source = attrs.evolve(trace.source, paths=tuple(map(str, inputs.paths)))\n"
        "        trace = attrs.evolve(trace, source=source)\n"
        f"        return ({change},)"
    )
    return reader(OWN, read, says)


def dispatches(columns: str, says: str = "") -> Mistake:
    return trace(f"attrs.evolve(trace, dispatches=attrs.evolve(trace.dispatches, {columns}))", says)


RECORD = ("profile", "--collector", "own", "--runs", "1", "-o", "{out}", "--", "true")
TIMING_ONLY = ("profile", "--collector", "timing-only", "--runs", "1", "-o", "{out}", "--", "true")


def collector(methods: str, says: str = "", *, role: str = "TIMING", **more) -> Mistake:
    source = (
        f"class Own(Collector):\n    name, summary, role = 'own', 'own', TraceRole.{role}\n"
        "    def missing(self):\n        return None\n"
        "    def plan(self, request):\n"
        "        return CollectionPlan((PlannedPass('run-1', TraceRole.TIMING, 'raw/run-1', ('true',)),))\n"
        "    def run(self, planned, run_directory, log):\n"
        "        return PassOutcome(planned, 0, 0.1, process_ms=1.0)\n"
        f"{methods}"
    )
    more.setdefault("command", RECORD if role == "TIMING" else TIMING_ONLY)
    return gives("rpl_collectors", "(Own(),)", says, before=source, **more)


def method(name: str, arguments: str, body: str) -> str:
    return f"    def {name}(self, {arguments}):\n        {body}\n"


def check(answer: str, says: str = "") -> Mistake:
    source = (
        "class Look(DoctorCheck):\n    name, summary = 'look', 'looks'\n"
        f"    def check(self):\n        {answer}\n"
    )
    return gives("rpl_doctor_checks", "(Look(),)", says, before=source, command=("doctor",), code=69)


def option(answer: str, says: str = "", **more) -> Mistake:
    return gives("rpl_options", answer, says, **more)


def used_option(change: str, says: str) -> Mistake:
    """An option that the user gives, which changes what is analysed."""
    words = ("analyze", "{recording}", "--device", "gfx942", "--own", "1", "-o", "{out}")
    answer = f"(CommandOption('own', ('analyze',), str, None, 'x', {change}),)"
    return option(answer, says, command=words, code=70)


def figure(metric: str, says: str) -> Mistake:
    given = f"AnalysisOutcome({{KernelFigure('f'): {{'kernel_a': {metric}}}}})"
    return analyzer(f"return {given}", says, provides="frozenset({KernelFigure('f')})")


def device(change: str, says: str, **more) -> Mistake:
    source = (
        "def made(**changed):\n    from rpl_gfx942.plugin import rpl_device_models\n"
        "    return attrs.evolve(rpl_device_models()[0], **{'name': 'mine', 'chip_ids': (1,), **changed})\n"
    )
    return gives("rpl_device_models", f"(made({change}),)", says, before=source, **more)


def replayer(body: str, says: str) -> Mistake:
    source = (
        "from rpl_core.model.metric import Origin\n"
        "from rpl_vmreplay.interfaces import Replayer\n"
        "class Own(Replayer):\n    name, summary, devices, origin = 'own', 'own', (), Origin.MODELLED\n"
        "    def replay(self, request):\n        return None\n"
        f"    def reserve(self, request):\n        {body}\n"
    )
    words = ("replay", "reserve-check", "--replayer", "own")
    return gives("rpl_replayers", "(Own(),)", says, before=source, command=words, code=70)


def tuning(hook: str, kind: str, method_: str, says: str) -> Mistake:
    """An executor or a strategy that ``rpl autotune`` is told to use."""
    interfaces = "rpl_core.interfaces.executor" if kind == "executor" else "rpl_autotune.interfaces"
    source = (
        f"from {interfaces} import {kind.title()}\n"
        f"class Own({kind.title()}):\n    name, summary = 'own', 'own'\n"
        "    def open(self, request):\n        return None\n"
        "    def start(self, request):\n        return None\n"
        f"    def {method_}\n"
    )
    words = (
        "autotune",
        "--space",
        "{folder}/space.json",
        "--cmd-template",
        "true {{N}}",
        "--no-rocprof",
        "-o",
        "{out}",
    )
    return gives(hook, "(Own(),)", says, before=source, command=(*words, f"--{kind}", "own"), code=70)


def transformation(body: str, says: str) -> Mistake:
    source = (
        "from rpl_optimize.interfaces.transformation import Edit, EditCandidate, Transformation\n"
        "class Own(Transformation):\n    name, summary = 'own', 'own'\n"
        f"    def propose(self, source):\n        {body}\n"
    )
    words = ("transform", "{folder}/source.hip")
    return gives("rpl_transformations", "(Own(),)", says, before=source, command=words)


def named(kind: str, method_: str, body: str, says: str = "", **more) -> Mistake:
    """An exporter or renderer that the user asks for by name."""
    source = (
        f"class Own({kind}):\n    name, summary, suffix = 'own', 'own', '.own'\n"
        f"    def {method_}(self, request):\n        {body}\n"
    )
    return gives(f"rpl_{kind.lower()}s", "(Own(),)", says, before=source, **more)


EXPORT = {"command": ("export", "{recording}", "--format", "own"), "code": 70}
REPORT = {"command": ("report", "{run}", "--format", "own"), "code": 70}

MISTAKES = {
    # hooks
    "a list where a tuple was expected": gives("rpl_readers", "[]", "returned list"),
    "one value without its tuple": gives("rpl_classifier_rules", "CONDITION", "returned Condition"),
    "a hook that raises": gives("rpl_analyzers", "1 / 0", "ZeroDivisionError"),
    "a hook that exits": gives("rpl_documents", "exit(3)", "sys.exit(3)"),
    "a class instead of its instance": gives("rpl_analyzers", "(Analyzer,)", "Analyzer was expected"),
    # devices and ceilings
    "a device's name where a device was expected": gives(
        "rpl_detect_device",
        "'gfx942'",
        "returned a str",
        arguments="agents",
        command=("analyze", "{recording}", "-o", "{out}"),
    ),
    "a detection that raises": gives(
        "rpl_detect_device",
        "agents[99]",
        "IndexError",
        arguments="agents",
        command=("analyze", "{recording}", "-o", "{out}"),
    ),
    "ceilings as tuples": gives("rpl_ceilings", "(('F64', 1.0),)", "returned a tuple", arguments="device"),
    "ceilings that raise": gives("rpl_ceilings", "device.no_such_thing", "no_such_thing", arguments="device"),
    "a ceiling of text": gives(
        "rpl_ceilings",
        "(ComputeCeiling('F64', Pipe.VALU, '1.0', CeilingOrigin.SPEC, 'here'),)",
        "peak_gflops is str",
        arguments="device",
    ),
    "a pipe of text": gives(
        "rpl_ceilings",
        "(ComputeCeiling('F64', 'valu', 1.0, CeilingOrigin.SPEC, 'here'),)",
        "pipe is str",
        arguments="device",
    ),
    "a ceiling that is no number": gives(
        "rpl_ceilings",
        "(ComputeCeiling('F64', Pipe.VALU, float('nan'), CeilingOrigin.SPEC, 'here'),)",
        "peak_gflops is nan",
        arguments="device",
    ),
    "a ceiling below zero": gives(
        "rpl_ceilings",
        "(MemoryCeiling('hbm', -1.0, CeilingOrigin.SPEC, 'here'),)",
        "peak_gbps is -1.0, which is no rate",
        arguments="device",
    ),
    "a clock without end": device(
        "clock_mhz=float('inf')",
        "clock_mhz is inf",
        command=("analyze", "{recording}", "--device", "mine", "-o", "{out}"),
        code=69,
    ),
    "the name of a built-in device": device("name='mi300x'", "which plugin 'gfx942' already offers"),
    # rules
    "an unknown label": rule("Rule('r', 'slow', 1, (CONDITION,), 'x')", "slow"),
    "a condition that works in its own way": rule(
        "Rule('r', 'careless:slow', 1, (type('Odd', (Condition,), {})(*attrs.astuple(CONDITION)),), 'x')",
        "of the class Condition",
    ),
    "a label of another plugin": rule(
        "Rule('r', 'gfx942:slow', 1, (CONDITION,), 'x')", "is of another plugin"
    ),
    "advice for an unknown label": gives(
        "rpl_advice",
        "(Advice('a', ('slow',), 'do', 'x'),)",
        "slow",
        before="from rpl_analysis.interfaces import Advice",
    ),
    "a rule without conditions": rule("Rule('r', 'careless:slow', 1, (), 'x')", "needs conditions"),
    "a condition as a tuple": rule("Rule('r', 'careless:slow', 1, (('a', '<', 1),), 'x')", "conditions"),
    "a threshold as text": rule(
        "Rule('r', 'careless:slow', 1, (attrs.evolve(CONDITION, threshold='2'),), 'x')", "threshold"
    ),
    "a comparison as text": rule(
        "Rule('r', 'careless:slow', 1, (attrs.evolve(CONDITION, comparison='<'),), 'x')", "comparison"
    ),
    "a threshold that is no number": rule(
        "Rule('r', 'careless:slow', 1, (attrs.evolve(CONDITION, threshold=float('nan')),), 'x')", "threshold"
    ),
    "a priority as text": rule("Rule('r', 'careless:slow', '1', (CONDITION,), 'x')", "priority"),
    # facts and analyzers
    "a fact of the wrong type": analyzer("return AnalysisOutcome({COUNT: 'many'})", "is int, not str"),
    "a fact that was not promised": analyzer("return AnalysisOutcome({})", "promised"),
    "facts without their outcome": analyzer("return {COUNT: 1}", "AttributeError"),
    "no outcome": analyzer("return None", "AttributeError"),
    "an analyzer that raises": analyzer("raise KeyError('x')", "KeyError"),
    "an analyzer that exits": analyzer("raise SystemExit(2)", "sys.exit(2)"),
    "a published fact that is no JSON": analyzer(
        "return AnalysisOutcome({BAD: {1: {2}}})",
        "can't be written as JSON",
        provides="frozenset({BAD})",
    ),
    "a figure that is no metric": analyzer(
        "return AnalysisOutcome({KernelFigure('f'): {'kernel_a': 1.0}})",
        "Metric",
        provides="frozenset({KernelFigure('f')})",
    ),
    "a figure that is no number": figure("Metric(float('inf'), '1')", "sound Metrics"),
    "a share below nothing": figure("Metric(-5, 'fraction')", "a fraction of -5 is below 0"),
    "figures of invented kernels": analyzer(
        "return AnalysisOutcome({KernelFigure('f'): {f'k{i}': Metric(1, 'ms') for i in range(300_000)}})",
        "300000 kernels that nobody recorded",
        provides="frozenset({KernelFigure('f')})",
    ),
    "a figure of text": figure("Metric('fast', '1')", "sound Metrics"),
    "a fact with a number for its name": analyzer(
        "return None", "set of facts", provides="frozenset({Fact(5)})"
    ),
    "a diagnostic of text": analyzer("return AnalysisOutcome({COUNT: 1}, ('odd',))", "Diagnostic"),
    "a severity of text": analyzer(
        "return AnalysisOutcome({COUNT: 1}, (Diagnostic('careless.odd', 'odd', severity='bad'),))", "severity"
    ),
    "promised facts as text": analyzer("return None", "set of facts", provides="frozenset({'count'})"),
    "a fact of somebody else": analyzer(
        "return AnalysisOutcome({Fact('kernel_times'): None})",
        "already provides",
        provides="frozenset({Fact('kernel_times')})",
    ),
    "facts that nobody gives": analyzer(
        "return None", "nobody provides", extra="    requires = frozenset({Fact('moon')})\n"
    ),
    "facts of others cleared": analyzer(
        "[context.facts[k].clear() for k in context.facts if hasattr(context.facts[k], 'keys')]",
        "AttributeError",
        extra="    wants_figures = True\n",
    ),
    # documents and sections
    "a section of no document": Mistake(
        section("return Own(n=1)").source.replace(
            "'part', 'part', 'profile', 'part'", "'part', 'part', 'profil', 'part'"
        ),
        "no installed plugin offers the document 'profil'",
    ),
    "a section of invented kernels": Mistake(
        section("return None").source.replace(
            "    def draft",
            "    def kernels(self, context):\n"
            "        own = Own(n=1)\n        return {f'k{i}': own for i in range(300_000)}\n"
            "    def draft",
        ),
        "blocks of 300000 kernels",
    ),
    "a section of another model": section("return Other(n=1)", "Other where Own"),
    "a section as a dict": section("return {'n': 1}", "dict where Own"),
    "a section without end": section_at("part", "Own(n=float('inf'))", "n: float", "ValueError"),
    "a section of text that nobody can write": section_at(
        "part", "Own(n=chr(0xD800))", "n: str", "surrogates"
    ),
    "a section that was never validated": section_at(
        "part", "Own.model_construct(n='x')", "n: int", "PydanticSerializationError"
    ),
    "a section in a field of the document": section_at("runtime_ms", "Own(n=1)", "n: int", "its own"),
    "a section in the envelope": section_at("schema_version", "Own(n=1)", "n: int", "its own"),
    "a section that raises": section("return Own(n='x')", "ValidationError"),
    "a document that breaks its contract": document(
        "return {'n': 'x'}",
        "int",
        shape="{'type': 'typed-dict', 'extra_behavior': 'ignore', 'fields':"
        " {'n': {'type': 'typed-dict-field', 'schema': {'type': 'int'}}}}",
    ),
    "a document that is no JSON": document(
        "return {'n': object()}",
        "PydanticSerializationError",
        shape="{'type': 'typed-dict', 'extra_behavior': 'allow', 'fields': {}}",
    ),
    "a shape of a list": document("return {}", "fields by name"),
    "a file in place of a document": document(
        "return {}\n    attachments = lambda self, c: {'dag.json': b''}", "no name"
    ),
    "the schema of a section that raises": Mistake(
        section("return None").source.replace("return Own\n", "return 1 / 0\n"),
        "ZeroDivisionError",
        ("schema", "profile"),
    ),
    "a document as a list": document("return [1]", "list"),
    "a shape that is none": document("return {}", "SchemaError", shape="{'type': 'moon'}"),
    "a report section of a list of text": report_section("return ['x']", "Paragraph"),
    "a report section of text": report_section("return 'x'", "str"),
    "a report section that raises": report_section("raise RuntimeError('boom')", "boom"),
    "a section of text that no report can hold": report_section(
        "return (Paragraph(chr(0xD800)),)", "surrogates"
    ),
    "a row of another length": report_section("return (Table(('a', 'b'), (('x',),)),)", "row"),
    # readers
    "claimed paths": reader("return list(files)", "return ()", "InputSet was expected"),
    "a claim that raises": reader("raise OSError('no')", "return ()", "OSError"),
    "a claim of None": reader("return None", "return ()", "TypeError"),
    "a claim of files that were not offered": reader(
        "return [InputSet('own', 'own', (Path('/etc/hosts'),))]", "return ()", "not offered"
    ),
    "a claim that fails as expected": reader("raise BadDataError('odd')", "return ()", "odd"),
    "the same claim twice": reader(f"{OWN} * 2", "return ()", "twice"),
    "a refusal by the way": reader(
        "return [InputSet('own', 'own', (f,)) for f in files if f.suffix == '.db']",
        "raise BadDataError('too new')",
        "too new",
    ),
    "no trace of what others read": reader(
        "return [InputSet('own', 'own', tuple(files))]", "return ()", "read gave no trace"
    ),
    "a claim of text": reader("return [InputSet('own', 'own', ('x',))]", "return ()", "paths holds str"),
    "a refusal of what others read": reader(
        "return [InputSet('own', 'own', tuple(files), refusal='mine alone')]", "return ()", None
    ),
    "no traces": reader(OWN, "return None", "read gave NoneType"),
    "a generator of traces": reader(OWN, "yield", "read gave generator"),
    "a reader that exits": reader(OWN, "raise SystemExit(1)", "sys.exit(1)"),
    "a trace as text": trace("'trace'", "Trace was expected"),
    "a role as text": trace("attrs.evolve(trace, role='timing')", "role is str"),
    "an origin as text": trace("attrs.evolve(trace, origin='measured')", "origin is str"),
    "kernels as text": trace("attrs.evolve(trace, kernels=('mine',))", "kernels holds str"),
    "a kernel without a name": trace(
        "attrs.evolve(trace, kernels=(attrs.evolve(trace.kernels[0], name=None),))", "name"
    ),
    "processes as a list": trace("attrs.evolve(trace, processes=list(trace.processes))", "processes is list"),
    "float times": dispatches("begin_ns=trace.dispatches.begin_ns * 1.0", "float64"),
    "times as a list": dispatches("begin_ns=[0, 2000]", "begin_ns is list"),
    "columns of different lengths": dispatches("end_ns=np.array([1], dtype=np.int64)", "different lengths"),
    "rows that end before they begin": dispatches(
        "end_ns=trace.dispatches.begin_ns - 5", "before they begin"
    ),
    "rows out of order": dispatches(
        "begin_ns=trace.dispatches.begin_ns[::-1].copy(), end_ns=trace.dispatches.end_ns[::-1].copy()",
        "order",
    ),
    "shapes with three axes in a row": trace(
        "attrs.evolve(trace, shapes=attrs.evolve(trace.shapes, grid=trace.shapes.grid.ravel()))", "shapes"
    ),
    "a column with a mask": dispatches("begin_ns=np.ma.array(trace.dispatches.begin_ns)", "MaskedArray"),
    "a name that nobody can write": trace(
        "attrs.evolve(trace, kernels=(attrs.evolve(trace.kernels[0], name=chr(0xD800)),))", "surrogates"
    ),
    "a file that is not there": trace(
        "attrs.evolve(trace, source=attrs.evolve(trace.source, paths=('/nowhere',)))", "source.paths"
    ),
    "an index out of range": dispatches("kernel=np.array([0, 7], dtype=np.int32)", "points outside"),
    "columns of others altered": analyzer(
        "context.recording.traces[0].dispatches.end_ns[:] = 0",
        "read-only",
    ),
    "extras of others altered": analyzer("context.recording.traces[0].extras.clear()", "clear"),
    "documents of others altered": section("context.drafts.clear()", "clear"),
    "a document of others altered": section("context.drafts['profile'].clear()", "read-only"),
    "a part of a document altered": section(
        "context.drafts['profile']['kernels'][0]['name'] = ''", "read-only"
    ),
    # collectors
    "a collector's role as text": collector("", "role is str", role="TIMING.value", command=TIMING_ONLY),
    "no plan": collector(method("plan", "request", "return None"), "NoneType", code=70),
    "a plan of text": collector(
        method("plan", "request", "return CollectionPlan(('true',))"), "passes holds str", code=70
    ),
    "a plan without passes": collector(
        method("plan", "request", "return CollectionPlan(())"), "needs passes", code=70
    ),
    "a pass that leaves the run directory": collector(
        method(
            "plan",
            "request",
            "return CollectionPlan((PlannedPass('a', TraceRole.TIMING, '../a', ('true',)),))",
        ),
        "no place in the run directory",
        code=70,
    ),
    "an outcome of nothing": collector(
        method("run", "planned, run_directory, log", "return PassOutcome(planned, 0, 0.1)"),
        "neither files nor a time",
        code=70,
    ),
    "no outcome of a pass": collector(
        method("run", "planned, run_directory, log", "return None"), "NoneType", code=70
    ),
    "files as paths": collector(
        method(
            "run",
            "planned, run_directory, log",
            "return PassOutcome(planned, 0, 0.1, files=(Path('x'),), process_ms=1.0)",
        ),
        "files holds",
        code=70,
    ),
    "a bool where a reason was expected": collector(
        "    def missing(self):\n        return False\n", "bool", code=70
    ),
    "passes to follow that raise": collector(
        method("follow_up", "request", "raise LookupError('gone')"), "gone", role="THREAD_TRACE"
    ),
    "passes to follow as a list": collector(
        method("follow_up", "request", "return ['x']"), "list", role="THREAD_TRACE"
    ),
    "a lost pass that nobody can tell of": collector(
        method("follow_up", "request", "raise LookupError('gone')") + method("lost", "error", "return 'x'"),
        "gone",
        role="THREAD_TRACE",
    ),
    "a run that nobody may hear of": gives(
        "rpl_run_started", "run.nothing", "AttributeError", arguments="run", command=TIMING_ONLY
    ),
    # doctor
    "a bool from a check": check("return True", "bool"),
    "a check that raises": check("raise RuntimeError('boom')", "boom"),
    "a check that exits": check("raise SystemExit(0)", "sys.exit"),
    "a status as text": check("return DoctorReport('ok', 'fine')", "status"),
    # options
    "an option that is the core's": option(
        "(CommandOption('device', ('analyze',), str, None, 'mine'),)", "device"
    ),
    "an option that changes the recording into nothing": used_option(
        "change_recording=lambda recording, value: None", "Recording was expected"
    ),
    "an option that changes the device into text": used_option(
        "change_device=lambda device, value: value", "DeviceModel was expected"
    ),
    "an option whose change raises": used_option(
        "change_recording=lambda recording, value: recording.nothing", "AttributeError"
    ),
    "an option with the key of an argument": option(
        "(CommandOption('as-json', ('analyze',), str, None, 'mine'),)", "as-json"
    ),
    "two options of one name": option(
        "tuple(CommandOption('twin', ('analyze',), str, None, help) for help in 'ab')",
        "already offers",
    ),
    "an option with blanks": option("(CommandOption('a b', ('analyze',), str, None, 'x'),)", "unusable name"),
    "commands as text": option("(CommandOption('own', 'analyze', str, None, 'x'),)", "commands is str"),
    "an option whose parse raises": option(
        "(CommandOption('own', ('analyze',), lambda text: text.nothing, None, 'x'),)",
        "AttributeError",
        command=("analyze", "{recording}", "--own", "1", "-o", "{out}"),
        code=70,
    ),
    "an option whose parse is none": option("(CommandOption('own', ('analyze',), 'int', 1, 'x'),)", "parse"),
    # of other distributions: replayers, executors, strategies, transformations
    "a replayer of nothing": replayer("return None", "ReserveResult was expected"),
    "a replayer that raises": replayer("raise LookupError('gone')", "gone"),
    "an executor of nothing": tuning(
        "rpl_executors", "executor", "open(self, request):\n        return None", "Workers"
    ),
    "a strategy that can't be asked": tuning(
        "rpl_strategies", "strategy", "missing(self):\n        return 1 / 0", "ZeroDivisionError"
    ),
    "candidates as text": transformation("return 'abc'", "a tuple was expected"),
    "a candidate of text": transformation("return ('abc',)", "returned str"),
    "a candidate whose verdict is text": transformation(
        "return (EditCandidate('c', 'k', 1, 'changes', (Edit(0, 0, b' '),), ('fine',)),)", "AttributeError"
    ),
    "a candidate that declares text": transformation(
        "return (EditCandidate('c', 'k', 1, 'changes', (Edit(0, 0, b' '),), declares=('all',)),)", "declares"
    ),
    # what the user asks for by name: there is nothing else to show
    "an export of text": named("Exporter", "export", "return 'text'", "bytes were expected", **EXPORT),
    "an export of nothing": named("Exporter", "export", "return None", "bytes were expected", **EXPORT),
    "a renderer of nothing": named("Renderer", "render", "return None", "NoneType", **REPORT),
    "a renderer of text that nobody can write": named(
        "Renderer", "render", "return chr(0xD800)", "surrogates", **REPORT
    ),
    "an exporter that was refused": Mistake(
        named("Exporter", "export", "return b''").source.replace("'.own'", "5"),
        "suffix",
        ("export", "{recording}", "--format", "own"),
        64,
    ),
    "a document that older runs lack": Mistake(
        document("return {}", shape="{'type': 'any'}").source, None, ("report", "{run}")
    ),
    "a renderer that raises": named("Renderer", "render", "raise KeyError('profile')", "KeyError", **REPORT),
}


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    """A recording beside a file of the careless plugin, and a run directory with documents."""
    from rpl_core.cli.main import run
    from rpl_testkit.fixtures import Launch, RocpdBuilder

    folder = tmp_path_factory.mktemp("material")
    (folder / "recording").mkdir()
    launches = [Launch("kernel_a", 0, 1000), Launch("kernel_b", 2000, 5000)]
    recording = RocpdBuilder(folder / "recording")(launches)
    (folder / "recording" / "beside.own").write_text("own\n")
    (folder / "recording" / "space.json").write_text('{"parameters": {"N": [1, 2]}}')
    (folder / "recording" / "source.hip").write_text("__global__ void k() {}\n")
    assert run(["analyze", str(recording), "-o", str(folder / "run"), "--quiet"]) == 0
    return {"recording": recording, "folder": folder / "recording", "run": folder / "run"}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_costs_only_its_plugin(name, rpl_site, rpl_cli, material, tmp_path):
    mistake = MISTAKES[name]
    rpl_site.module("careless_imports", IMPORTS)
    rpl_site.plugin("careless", "from careless_imports import *\n" + mistake.source)
    out = tmp_path / "out"
    done = rpl_cli(*(word.format(out=out, **material) for word in mistake.command))

    said = " ".join((done.stdout + done.stderr).split())
    assert "internal error" not in said, said
    assert done.exit_code == mistake.code, said
    if mistake.says is None:
        assert "careless" not in said
    else:
        assert "careless" in said, said
        assert mistake.says in said, said
    if "{out}" in mistake.command and mistake.code == 0:
        _has_what_others_give(done, out, recorded=mistake.command[0] == "analyze")
    elif mistake.command == ("doctor",):
        assert "runs-directory" in done.stdout


def _has_what_others_give(done, out, *, recorded):
    documents = {path.stem: json.loads(path.read_text()) for path in out.glob("*.json")}
    assert {"analysis", "dag", "profile", "roofline"} <= set(documents)
    if recorded:
        assert {kernel["name"] for kernel in documents["profile"]["kernels"]} == {"kernel_a", "kernel_b"}
        assert "kernel_b" in done.stdout
