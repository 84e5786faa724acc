"""The two kernels of a comparison: which code objects can be compared, whether they compute the same, and
their launches in turns.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import BadDataError, MissingError
from rpl_core.interfaces.options import Options
from rpl_core.model.metric import Origin
from rpl_core.values import frozen
from rpl_vmreplay.capture.folder import Capture
from rpl_vmreplay.compare.experiment import PATTERNS, Answer, Experiment, variables_of
from rpl_vmreplay.compare.judge import Allowance, Judgement, Subjects, Verdict, Yardstick, judge
from rpl_vmreplay.interfaces import MemoryEdit, Replayer, ReplayRequest
from rpl_vmreplay.replay.captured_code import takes_launch

if TYPE_CHECKING:
    from rpl_codeobject.kernel_code import CodeObject

# Both are for the captured GPU, with the captured kernel, of one layout of arguments.


def subjects_of(capture: Capture, a: Path, b: Path, folder: Path) -> Subjects:
    """Files may be code objects, bundles or programs that hold some; what is run is written to ``folder``.

    Raises BadDataError for another layout of arguments, limits that the captured launch breaks and what
    can't be read.
    """
    from rpl_codeobject.comparing import Severity, compare_code_objects

    name = capture.kernel_name
    codes = [_code_of(path, name, capture) for path in (a, b)]
    diff = compare_code_objects([codes[0]], [codes[1]], kernel=name)
    breaking = diff.of(Severity.BREAKING)
    before, after = (code.kernel(name) for code in codes)
    assert before is not None
    assert after is not None
    if breaking := tuple(
        difference for difference in breaking if not takes_launch(capture, difference.what, before, after)
    ):
        first = breaking[0]
        raise BadDataError(
            f"{b} has another launch interface of {name} than {a}: {first.what} is {first.after or 'absent'} "
            f"instead of {first.before or 'absent'}",
            cause=first.reason,
            next_step="`rpl abi-diff` shows all differences",
        )
    places = [folder / "a.hsaco", folder / "b.hsaco"]
    for place, code in zip(places, codes, strict=True):
        place.write_bytes(code.elf)
    return Subjects(places[0], places[1], codes[0], name)


def _code_of(path: Path, name: str, capture: Capture) -> CodeObject:
    from rpl_codeobject.reading import read_code_objects

    with_kernel = [code for code in read_code_objects(path) if code.kernel(name) is not None]
    fitting = [code for code in with_kernel if code.architecture in capture.dispatch.isa_name]
    if not fitting:
        where = f"for {capture.dispatch.isa_name}" if with_kernel else "in it"
        raise BadDataError(
            f"{path} has no kernel {name} {where}", next_step="`rpl abi-diff` lists its kernels"
        )
    return fitting[0]


def compare_code(
    capture: Capture,
    replayer: Replayer,
    subjects: Subjects,
    *,
    allowance: Allowance | None = None,
    time_limit_s: float | None = None,
    options: Options | None = None,
    sanitize: bool | None = None,
) -> Judgement:
    """Whether ``subjects.b`` computes what ``subjects.a`` computes for the captured input.

    ``options`` are those of the replayer; ``sanitize``: it has to look for races (``None``: where it can).
    Raises what that raises, and ``BadDataError`` and ``MissingError``
    for code that can't be read.
    """
    experiment = Experiment(capture, replayer, time_limit_s, options or Options(), sanitize)
    return judge(experiment, subjects, allowance or Allowance())


# Launches of two kernels in turns on one capture: their times, and whether they still compute the same.


@frozen
class Turns:
    """Times of each pair, A's and B's, in ns. ``problem`` says why there are none, or why they mean nothing;
    ``different``: because the results behind the last pair are not those of the comparison any more."""

    pairs: tuple[tuple[int, int], ...] = ()
    origin: Origin | None = None
    problem: str | None = None
    different: bool = False

    @property
    def ratios(self) -> tuple[float, ...]:
        """B's time by A's."""
        return tuple(b / a for a, b in self.pairs if a > 0)


@frozen
class TurnsRequest:
    """``b_first``: for each pair. ``yardstick`` is that of the comparison which called B equal."""

    capture: Capture
    subjects: Subjects
    yardstick: Yardstick
    b_first: tuple[bool, ...]
    time_limit_s: float | None = None
    cold_caches: bool = False


def take_turns(request: TurnsRequest, replayer: Replayer, options: Options) -> Turns:
    """One replay; memory is poisoned and restored before each launch as in the comparison."""
    try:
        result = replayer.replay(_replay_request(request, options))
    except MissingError as error:
        return Turns(problem=error.one_line())
    if result.failure is not None:
        return Turns(origin=result.origin, problem=f"{replayer.name}: {result.failure.fact}")
    if result.against is None or not result.times_ns:
        return Turns(origin=result.origin, problem=f"the replayer {replayer.name} knows no times")
    pairs = tuple(zip(result.times_ns, result.against.times_ns, strict=True))
    baseline = request.yardstick.baseline
    names = baseline.writes.variables
    left = result.kept + variables_of(result.variables, names)
    first = request.yardstick.compared(Answer(None, left))
    if first.verdict is not Verdict.EQUAL:
        problem = f"behind the timed launches the baseline itself gives other results: {first.reason}"
        return Turns((), result.origin, problem)
    # On one device: what both do there is compared with each other.
    there = attrs.evolve(request.yardstick, baseline=attrs.evolve(baseline, contents=(left,)))
    other = result.against.kept + variables_of(result.against.variables, names)
    second = there.compared(Answer(None, other))
    if second.verdict is Verdict.EQUAL:
        return Turns(pairs, result.origin)
    problem = f"behind the timed launches it gives other results: {second.reason}"
    return Turns((), result.origin, problem, different=True)


def _replay_request(request: TurnsRequest, options: Options) -> ReplayRequest:
    writes = request.yardstick.baseline.writes
    return ReplayRequest(
        request.capture.folder,
        iterations=len(request.b_first),
        code_object=request.subjects.a,
        against=request.subjects.b,
        against_first=request.b_first,
        edits=tuple(
            MemoryEdit(poison.address, bytes([PATTERNS[0]]) * poison.size) for poison in writes.poisoned
        ),
        keep=writes.written,
        keep_variables=True,
        hashes=False,
        time_limit_s=request.time_limit_s,
        cold_caches=request.cold_caches,
        options=options,
    )


def drawn_order(pairs: int) -> tuple[bool, ...]:
    """Who is first in each pair: each as often as the other, in an order that keeps time with nothing."""
    order = [number % 2 == 1 for number in range(pairs)]
    random.Random(pairs).shuffle(order)  # noqa: S311 - no secret
    return tuple(order)
