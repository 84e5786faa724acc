"""Contract checks of all kinds but recordings and devices, and what every check shares."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.interfaces.options import Options
from rpl_core.plugins.catalog import KINDS, ContributionKind
from rpl_optimize.interfaces.proposer import ProposalRequest, Proposer
from rpl_optimize.interfaces.transformation import EditCandidate, KernelSource, Transformation
from rpl_optimize.transform import apply_edits

if TYPE_CHECKING:
    from rpl_analysis.interfaces import Rule
    from rpl_core.interfaces.analyzer import AnalysisContext, Analyzer
    from rpl_core.interfaces.doctor import DoctorCheck
    from rpl_core.interfaces.section import Renderer, RenderRequest
    from rpl_optimize.interfaces.equivalence import EquivalenceCheck, EquivalenceReport, EquivalenceRequest
    from rpl_optimize.interfaces.metric import Metric

    Method = Callable[[KernelSource], tuple[EditCandidate, ...]]

# How a contract check fails, and what all checks share: demands, equal results, and no side effects.


class ContractViolation(AssertionError):  # noqa: N818 - it is an assertion about someone's code
    """A contribution breaks a rule of its kind; the message names contribution and rule."""


def demand(holds: bool, subject: str, rule: str) -> None:
    """Raise ``ContractViolation`` unless ``holds``."""
    if not holds:
        raise ContractViolation(f"{subject}: {rule}")


def assert_contribution(hook: str, item: Any) -> None:
    """What the host checks of everything that ``hook`` returns, whichever distribution owns the hook."""
    demand_kind(hook, item)


def _kinds() -> Iterator[ContributionKind[Any]]:
    yield from KINDS
    for entry in metadata.entry_points(group="rpl.hookspecs"):
        yield from entry.load().KINDS


def demand_kind(hook: str, item: Any) -> str:
    """As ``assert_contribution``; returns "Kind name" for messages."""
    kind = next((kind for kind in _kinds() if kind.hook == hook), None)
    if kind is None:
        raise ContractViolation(f"{hook}: no installed distribution has this hook")
    violation = kind.violation(item)
    demand(violation is None, kind.title, violation or "")
    for attribute in kind.required_text:
        text = getattr(item, attribute)
        demand(
            bool(text.strip()) and text.isprintable(),
            f"{kind.title} {kind.identity_of(item)}",
            f"{attribute} must be one non-empty line, found {text!r}",
        )
    return f"{kind.title} {kind.identity_of(item)}"


def demand_positive(value: float, subject: str, what: str) -> None:
    """A finite number above zero."""
    finite = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    demand(finite and value > 0, subject, f"{what} must be a number above 0, found {value!r}")


def demand_reason_or_none(value: object, subject: str) -> None:
    """What ``missing()`` may return."""
    demand(
        value is None or (isinstance(value, str) and bool(value.strip())),
        subject,
        f"missing() must return None or a sentence, found {value!r}",
    )


# Equality of results that may hold numpy arrays and attrs objects, for determinism checks.


def same_value(left: Any, right: Any) -> bool:
    """Whether two results are equal, element by element."""
    if type(left) is not type(right):
        return False
    if hasattr(left, "dtype") and hasattr(left, "tobytes"):
        return bool(
            left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
        )
    if isinstance(left, Mapping):
        return list(left) == list(right) and all(same_value(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same_value, left, right))
    fields = getattr(type(left), "__attrs_attrs__", None)
    if fields is not None:
        return all(same_value(getattr(left, f.name), getattr(right, f.name)) for f in fields)
    return bool(left == right)


# Catch what a pure function must not do: open files, start programs, use the network.
#
# Python reports such deeds as audit events (PEP 578), whichever library commits them. An audit hook can't
# be removed again, so there is one, and it looks only while a check is watching.

_DEEDS = {
    "open": "opens a file",
    "os.exec": "runs a program",
    "os.fork": "runs a program",
    "os.posix_spawn": "runs a program",
    "os.system": "runs a program",
    "socket.__new__": "uses the network",
    "subprocess.Popen": "runs a program",
}
#: Whom the check watches, by thread.
_watched: dict[int, str] = {}


@contextmanager
def no_side_effects(subject: str) -> Iterator[None]:
    """Opening a file, starting a program or opening a socket raises ``ContractViolation``."""
    _install()
    thread = threading.get_ident()
    _watched[thread] = subject
    try:
        yield
    finally:
        del _watched[thread]


@cache
def _install() -> None:
    sys.addaudithook(_notice)


def _notice(event: str, arguments: tuple[object, ...]) -> None:
    subject = _watched.get(threading.get_ident()) if event in _DEEDS else None
    if subject is not None:
        what = f" ({arguments[0]!r})" if arguments else ""
        raise ContractViolation(
            f"{subject}: it {_DEEDS[event]}{what}, but its answer may depend on its input only"
        )


# Contracts of what analyses and shows: analyzers, classifier rules, renderers, doctor checks.


def assert_analyzer(analyzer: Analyzer, context: AnalysisContext) -> None:
    """Run ``analyzer`` twice on ``context``, which must hold the facts that it requires."""
    from rpl_core.interfaces.analyzer import AnalysisOutcome

    subject = demand_kind("rpl_analyzers", analyzer)
    demand(bool(analyzer.provides), subject, "provides nothing")
    demand(not analyzer.provides & analyzer.requires, subject, "requires what it provides")
    lacking = sorted(fact.name for fact in analyzer.requires if fact not in context.facts)
    demand(not lacking, subject, f"the test's context lacks the required facts {lacking}")
    analyzer.analyze(context)  # imports what it needs before files are forbidden
    with no_side_effects(subject):
        first = analyzer.analyze(context)
        second = analyzer.analyze(context)
    demand(isinstance(first, AnalysisOutcome), subject, "analyze() returns an AnalysisOutcome")
    promised, given = set(analyzer.provides), set(first.facts)
    names = [sorted(fact.name for fact in facts) for facts in (promised, given)]
    demand(given == promised, subject, f"provides {names[0]} but returned {names[1]}")
    for fact, value in first.facts.items():
        problem = fact.violation(value)
        demand(problem is None, subject, problem or "")
    demand(same_value(first, second), subject, "the same recording gives two different results")


def assert_rule(rule: Rule) -> None:
    """Check one rule."""
    from rpl_analysis.interfaces import Comparison

    subject = demand_kind("rpl_classifier_rules", rule)
    for condition in rule.conditions:
        what = f"condition on {condition.quantity!r}"
        demand(condition.quantity.isidentifier(), subject, f"{what} names no quantity")
        demand(isinstance(condition.comparison, Comparison), subject, f"{what} has no Comparison")
        demand(math.isfinite(condition.threshold), subject, f"{what} has no finite threshold")
        demand(bool(condition.source.strip()), subject, f"{what} must cite its source or say 'chosen'")


# The contracts of what people read: the text of a renderer, and what a doctor check found.

#: Generous for loaded test machines; the interface asks for a second or two.
_LIMIT_S = 20.0


def assert_renderer(renderer: Renderer, request: RenderRequest) -> None:
    """Check the output for ``request``; put hostile kernel names into its documents."""
    subject = demand_kind("rpl_renderers", renderer)
    demand(renderer.suffix.startswith("."), subject, "suffix begins with a dot")
    text = renderer.render(request)
    demand(isinstance(text, str), subject, "render() returns text")
    demand(bool(text.strip()), subject, "the output is empty")
    demand("\x1b" not in text, subject, "a name in the documents reached the output as a terminal escape")
    demand(renderer.render(request) == text, subject, "the same documents give two different outputs")


def assert_doctor_check(check: DoctorCheck) -> None:
    """Run the check once."""
    from rpl_core.interfaces.doctor import DoctorReport, DoctorStatus

    subject = demand_kind("rpl_doctor_checks", check)
    begin = time.monotonic()
    report = check.check()
    seconds = time.monotonic() - begin
    demand(isinstance(report, DoctorReport), subject, "check() returns a DoctorReport")
    demand(isinstance(report.status, DoctorStatus), subject, "status is a DoctorStatus")
    demand(bool(report.fact.strip()), subject, "the report states a fact")
    healthy = report.status is DoctorStatus.OK
    demand(healthy or bool((report.remedy or "").strip()), subject, "what is not ok needs a remedy")
    demand(healthy or bool(report.needed_for.strip()), subject, "what is not ok says what it is needed for")
    demand(seconds < _LIMIT_S, subject, f"it took {seconds:.0f} s")


# Contracts of what the optimizer asks: transformations, proposers, equivalence checks, metrics.


def check_candidate(candidate: EditCandidate, source: KernelSource, subject: str) -> None:
    """Edits lie in the file, do not overlap and change something; refusals say why."""
    subject = f"{subject}, candidate {candidate.id!r}"
    demand(bool(candidate.id) and candidate.id.isprintable(), subject, "id must be printable text")
    demand(bool(candidate.summary.strip()), subject, "summary must say what would change")
    last_line = source.text.count(b"\n") + 1
    demand(1 <= candidate.line <= last_line, subject, f"line {candidate.line} is not in the file")
    demand(source.kernel in {None, candidate.kernel}, subject, f"kernel {source.kernel!r} was asked for")
    for guard in candidate.guards:
        demand(bool(guard.guard), subject, "a guard has a name")
        demand(
            guard.passed or bool(guard.reason.strip()), subject, f"guard {guard.guard} refuses without reason"
        )
    demand(bool(candidate.edits) or not candidate.allowed, subject, "an allowed candidate has edits")
    position = 0
    for edit in sorted(candidate.edits, key=lambda e: (e.begin, e.end)):
        demand(0 <= edit.begin <= edit.end <= len(source.text), subject, f"{edit} leaves the file")
        demand(edit.begin >= position, subject, f"{edit} overlaps the edit before it")
        changes = source.text[edit.begin : edit.end] != edit.replacement
        demand(changes, subject, f"{edit} changes nothing")
        position = max(edit.end, edit.begin + 1)


# Proposers, equivalence checks and metrics.

_COMMAND = ("./app", "--size", "3 4")


def assert_equivalence_check(
    check: EquivalenceCheck, scratch: Path, *, different: EquivalenceRequest | None = None
) -> None:
    """Two empty builds must be ``not_run``; ``different``, two builds that differ, must not be equal."""
    from rpl_optimize.interfaces.equivalence import EquivalenceRequest, EquivalenceVerdict

    subject = demand_kind("rpl_equivalence_checks", check)
    folders = [scratch / "empty-baseline", scratch / "empty-candidate"]
    for folder in folders:
        folder.mkdir()
    nothing = _verdict(check, EquivalenceRequest(folders[0], folders[1], ("./no-such-program",)), subject)
    demand(
        nothing.verdict is EquivalenceVerdict.NOT_RUN,
        subject,
        f"two empty builds are not_run, not {nothing.verdict.value}",
    )
    if different is not None:
        verdict = _verdict(check, different, subject).verdict
        demand(verdict is not EquivalenceVerdict.EQUAL, subject, "calls two different programs equal")


def _verdict(check: EquivalenceCheck, request: EquivalenceRequest, subject: str) -> EquivalenceReport:
    from rpl_optimize.interfaces.equivalence import EquivalenceReport, EquivalenceVerdict

    report = check.check(request)
    demand(isinstance(report, EquivalenceReport), subject, "check() returns an EquivalenceReport")
    demand(isinstance(report.verdict, EquivalenceVerdict), subject, "the verdict is an EquivalenceVerdict")
    demand(bool(report.evidence.strip()), subject, "a verdict comes with its evidence")
    crashed_only = not report.crashed or report.verdict is EquivalenceVerdict.DIFFERENT
    demand(crashed_only, subject, "crashed explains a verdict of different, and no other")
    return report


def assert_metric(metric: Metric) -> None:
    """Without running anything: what it says of itself, and the words that it would run."""
    subject = demand_kind("rpl_metrics", metric)
    demand(bool(metric.devices), subject, "a metric names the devices that it is for")
    for what in ("unit", "formula", "architecture"):
        demand(bool(str(getattr(metric, what)).strip()), subject, f"a metric says its {what}")
    words = metric.command(_COMMAND, Options())
    demand(words[-len(_COMMAND) :] == _COMMAND, subject, "command() ends with the user's own words")


def assert_proposer(proposer: Proposer, request: ProposalRequest, *, deterministic: bool = True) -> None:
    """Check one proposal; ``deterministic=False`` for proposers that ask a language model."""
    from rpl_optimize.interfaces.transformation import EditCandidate

    subject = demand_kind("rpl_proposers", proposer)
    first = proposer.propose(request)
    demand(
        first is None or isinstance(first, EditCandidate), subject, "propose() returns a candidate or None"
    )
    if first is not None:
        check_candidate(first, request.source, subject)
    if deterministic:
        demand(proposer.propose(request) == first, subject, "the same request gives two different proposals")


# The contract of a transformation: proposals depend on the source alone and fit into it.
#
# So do the controls that it may offer.

_NAMES = {"empty", "broken"}


_STRANGE_TEXTS = (
    b"",
    b"\n",
    bytes(range(256)),
    b"__global__",
    b"// only a comment",
    b"\xff" * 100,
    b"{{{((\"'",
)


def assert_transformation(transformation: Transformation, source: KernelSource) -> None:
    """Check proposals for ``source``, which must hold at least one candidate, and for strange files.

    Controls are checked for every kernel that has a candidate.
    """
    subject = demand_kind("rpl_transformations", transformation)
    suffixes = transformation.suffixes
    demand(isinstance(suffixes, tuple) and bool(suffixes), subject, "suffixes is a non-empty tuple")
    demand(all(suffix.startswith(".") for suffix in suffixes), subject, "a suffix begins with a dot")
    candidates = _propose(transformation, source, subject)
    demand(bool(candidates), subject, "the test's source gives no candidate")
    for kernel in sorted({c.kernel for c in candidates if c.kernel is not None}):
        only = _propose(transformation, attrs.evolve(source, kernel=kernel), subject)
        expected = [c.id for c in candidates if c.kernel == kernel]
        demand([c.id for c in only] == expected, subject, f"asked for {kernel!r} it proposes something else")
        check_controls(transformation, attrs.evolve(source, kernel=kernel), subject)
    for text in _STRANGE_TEXTS:
        _propose(transformation, attrs.evolve(source, text=text), subject)
        check_controls(transformation, attrs.evolve(source, text=text, kernel="k"), subject)
    unknown = attrs.evolve(source, kernel="no such kernel")
    demand(
        not _propose(transformation, unknown, subject), subject, "proposes for a kernel that does not exist"
    )
    controls = check_controls(transformation, unknown, subject)
    demand(not controls, subject, "makes controls for a kernel that does not exist")


def _propose(transformation: Transformation, source: KernelSource, subject: str) -> tuple[EditCandidate, ...]:
    first = asked_twice(transformation.propose, "propose", source, subject, "answers")
    ids = [candidate.id for candidate in first]
    demand(len(set(ids)) == len(ids), subject, f"candidate ids repeat: {ids}")
    for candidate in first:
        check_candidate(candidate, source, subject)
    return first


def check_controls(
    transformation: Transformation, source: KernelSource, subject: str
) -> tuple[EditCandidate, ...]:
    """Their ids, that they fit ``source`` and differ, and that the kernel is still found in them."""
    controls = asked_twice(transformation.controls, "controls", source, subject, "controls")
    ids = [control.id for control in controls]
    demand(len(set(ids)) == len(ids) and set(ids) <= _NAMES, subject, f"controls are empty and broken: {ids}")
    texts = set()
    for control in controls:
        check_candidate(control, source, subject)
        demand(control.allowed, subject, f"the control {control.id} is refused by a guard")
        text = apply_edits(source.text, control.edits)
        texts.add(text)
        kept = (source.kernel or "").encode() in text
        demand(kept, subject, f"the control {control.id} has lost kernel {source.kernel!r}")
        transformation.propose(attrs.evolve(source, text=text))
    demand(len(texts) == len(controls), subject, "the controls empty and broken are the same program")
    return controls


def asked_twice(
    method: Method, name: str, source: KernelSource, subject: str, answers: str
) -> tuple[EditCandidate, ...]:
    """The tuple that ``method`` gives both times; ``name`` and ``answers`` are for the messages."""
    try:
        method(source)  # imports what it needs before files are forbidden
        with no_side_effects(subject):
            first = method(source)
            second = method(source)
    except ContractViolation:
        raise
    except Exception as error:
        raise ContractViolation(f"{subject}: {name}() raised {error!r} for {source.text[:40]!r}") from error
    demand(isinstance(first, tuple), subject, f"{name}() returns a tuple")
    demand(first == second, subject, f"the same source gives two different {answers}")
    return first
