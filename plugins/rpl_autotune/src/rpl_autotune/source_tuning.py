"""Constants of a kernel's source, searched by the strategies of ``rpl autotune`` (``rpl optimize --tune``).

The optimizer says which constants can be tuned, builds a configuration and runs it (``ProposalRequest``).
Here is the search: a space of powers of two around the values in the source, a strategy that chooses,
and the best configurations as candidates. What the search saw proves nothing: a candidate passes the same
gates as every edit, and is measured anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_autotune.hookspecs import STRATEGIES
from rpl_autotune.interfaces import Evaluated, Proposed, Search, SearchSpace, Strategy, StrategyRequest
from rpl_autotune.options import TUNE, TUNE_BUDGET, TUNE_FINALISTS, TUNE_RUNS, TUNE_STRATEGY
from rpl_core.errors import BadDataError, MissingError, PluginError, RplError
from rpl_core.files import read_regular
from rpl_core.model.value_checks import require_value
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_optimize.interfaces.proposer import ProposalRequest, Proposer, TriedOut
from rpl_optimize.interfaces.transformation import (
    TUNED_CONSTANTS,
    Edit,
    EditCandidate,
    Evidence,
    TunedConstants,
)

if TYPE_CHECKING:
    from rpl_optimize.interfaces.source_reading import Constant

#: In the session's directory: a line for each configuration that was tried out.
RECORD = "tuning.jsonl"
_MOST_RECORD_BYTES = 16 << 20
#: Values of one constant: what stands there, and that many halvings and doublings of it (chosen).
_STEPS = 2
#: HIP, "hipDeviceProp_t": a workgroup has at most so many work-items; no block or tile extent is larger.
_LARGEST = 1024
#: Above that each constant is only halved and doubled once (chosen: strategies hold features of all).
_MOST_CONFIGURATIONS = 2000
#: What a guard refuses costs a look of the compiler and no run: as many as so many times the budget (chosen).
_MOST_LOOKS = 4
_SEED = 1


@frozen(eq=False)
class _Found:
    """What one search saw: the time of the source as it stands, and the configurations that beat it."""

    reference: float
    unit: str
    better: tuple[tuple[dict[str, int], float], ...]


@attrs.define(eq=False)
class TuningProposer(Proposer):
    """Searches once per kernel and session, when it is asked first; then hands in the best it saw."""

    name = "tune"
    summary = "Search constants of the source and launches that follow them (--tune), and propose the best."
    asked_by = (TUNE,)

    _found: dict[tuple[Path | None, str], _Found | None] = attrs.field(factory=dict, init=False)

    def propose(self, request: ProposalRequest) -> EditCandidate | None:
        kernel, options = request.source.kernel, request.plugin_options
        asked = options[TUNE] and TUNED_CONSTANTS not in request.spent
        if not asked or kernel is None or request.source.reading is None or request.try_out is None:
            return None
        key = (request.directory, kernel)
        if key not in self._found:
            self._found[key] = None  # a search that fails is not begun again
            self._found[key] = _search(request, kernel)
        found = self._found[key]
        tried = {attempt.summary for attempt in request.attempts}
        for values, value in () if found is None else found.better[: options[TUNE_FINALISTS]]:
            if _summary(values) not in tried:
                candidate = _candidate(request, kernel, values)
                if candidate is not None:
                    return attrs.evolve(candidate, evidence=_evidence(request, found, value))
        return None


# The space.


def _constants(request: ProposalRequest, kernel: str) -> tuple[Constant, ...]:
    """Those that can be tuned; the user is told of the others."""
    assert request.source.reading is not None
    known = request.source.reading.constants(kernel)
    if isinstance(known, str):
        request.note(f"tune: the constants of {kernel} are not known: {known}")
        return ()
    for one in known:
        if one.refused is not None:
            request.note(f"tune: {one.name} (line {one.line}) is left as it is: {one.refused}")
    usable = tuple(one for one in known if one.refused is None)
    if not usable:
        request.note(f"tune: no constant of the source can be tuned for {kernel}")
    return usable


def _levels(value: int, steps: int) -> tuple[int, ...]:
    """Halvings and doublings of a value that are whole and no larger than a workgroup."""
    halved = [value >> step for step in range(1, steps + 1) if value % (1 << step) == 0]
    doubled = [value << step for step in range(1, steps + 1) if value << step <= _LARGEST]
    return (*sorted(halved), value, *doubled)


def _space(constants: Sequence[Constant]) -> SearchSpace:
    steps = _STEPS
    if prod(len(_levels(one.value, steps)) for one in constants) > _MOST_CONFIGURATIONS:
        steps = 1
    levels = [_levels(one.value, steps) for one in constants]
    configurations: list[tuple[int, ...]] = []
    for row in product(*levels):
        configurations.append(row)
        if len(configurations) >= _MOST_CONFIGURATIONS:
            break
    usual = tuple(one.value for one in constants)
    if usual not in configurations:
        configurations.append(usual)
    names = tuple(one.name for one in constants)
    return SearchSpace(names, tuple(configurations), configurations.index(usual))


# The search.


def _search(request: ProposalRequest, kernel: str) -> _Found | None:
    constants = _constants(request, kernel)
    if not constants:
        return None
    space, options = _space(constants), request.plugin_options
    budget = min(options[TUNE_BUDGET], len(space))
    _tell_plan(request, kernel, constants, space, budget)
    plugin, strategy = _strategy(request)
    with plugin_boundary(plugin, f"strategy {strategy.name!r}"):
        search = strategy.start(StrategyRequest(space, budget, _SEED))
    results = dict(_recorded(request, kernel, space))
    history: list[Evaluated] = []
    built = looks = 0
    reference: TriedOut | None = None
    for index in _indices(plugin, strategy.name, search, space, history):
        if index not in results:
            results[index] = _tried(request, kernel, space, index)
        outcome = results[index]
        if reference is None:
            reference = outcome
            if outcome.value is None:
                request.note(f"tune: the source as it stands could not be timed: {outcome.problem}")
                return None
        history.append(Evaluated(index, outcome.value))
        built, looks = built + outcome.built, looks + 1
        if built >= budget or looks >= _MOST_LOOKS * budget:
            break
    assert reference is not None
    return _best(request, kernel, space, history, reference)


def _indices(
    plugin: str, name: str, search: Search, space: SearchSpace, history: list[Evaluated]
) -> Iterator[int]:
    """The source as it stands, and then what the strategy says."""
    yield space.default
    while len(history) < len(space):
        with plugin_boundary(plugin, f"strategy {name!r}"):
            answer = [require_value(one, Proposed) for one in search.propose(tuple(history), (), 1)]
        known = {one.index for one in history}
        fresh = [one.index for one in answer if 0 <= one.index < len(space) and one.index not in known]
        if answer and not fresh:
            raise PluginError(plugin, f"strategy {name!r}", "it proposed only what it had before")
        if not fresh:
            return
        yield fresh[0]


def _strategy(request: ProposalRequest) -> tuple[str, Strategy]:
    strategies = request.offered(STRATEGIES)
    strategy = strategies.get(request.plugin_options[TUNE_STRATEGY])  # says which there are
    plugin = strategies.plugin_of(strategy.name)
    with plugin_boundary(plugin, f"strategy {strategy.name!r}"):
        missing = strategy.missing()
    if missing is not None:
        raise MissingError(f"the strategy {strategy.name} can't work here: {missing}")
    return plugin, strategy


def _tell_plan(
    request: ProposalRequest, kernel: str, constants: Sequence[Constant], space: SearchSpace, budget: int
) -> None:
    runs = request.plugin_options[TUNE_RUNS]
    levels = (f"{name} ({', '.join(map(str, space.levels(at)))})" for at, name in enumerate(space.parameters))
    follow = [one.name for one in constants if one.changes_launches]
    launches = f"; launches follow {', '.join(follow)}" if follow else ""
    request.note(f"tune: {kernel}: {', '.join(levels)}{launches}")
    cost = request.told_cost(runs * budget)
    finalists = counted(request.plugin_options[TUNE_FINALISTS], "finalist is", "finalists are")
    request.note(
        f"tune: {counted(len(space), 'configuration')}; at most {budget} are built, checked and run "
        f"{counted(runs, 'time')} each{cost}; then {finalists} measured like every candidate"
    )


def _tried(request: ProposalRequest, kernel: str, space: SearchSpace, index: int) -> TriedOut:
    values = _whole(space, index)
    candidate = _candidate(request, kernel, values)
    assert request.try_out is not None
    if candidate is None:
        return TriedOut(None, problem="the source changed meanwhile", built=False)
    outcome = request.try_out(candidate, request.plugin_options[TUNE_RUNS])
    if request.directory is not None:
        line = {"kernel": kernel, "values": values, **attrs.asdict(outcome)}
        with (request.directory / RECORD).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
    return outcome


def _recorded(request: ProposalRequest, kernel: str, space: SearchSpace) -> Iterator[tuple[int, TriedOut]]:
    """What an interrupted session tried out before. What does not fit is tried again."""
    path = None if request.directory is None else request.directory / RECORD
    if path is None or not path.is_file():
        return
    try:
        lines = read_regular(path, _MOST_RECORD_BYTES, links=False).decode("utf-8", "replace").splitlines()
    except (OSError, RplError):
        return
    for line in lines:
        try:
            index, outcome = _of_line(json.loads(line), kernel, space)
        except (ValueError, KeyError, TypeError, RecursionError, BadDataError):
            continue
        if index is not None:
            yield index, outcome


def _of_line(entry: Any, kernel: str, space: SearchSpace) -> tuple[int | None, TriedOut]:
    value, problem = entry["value"], entry["problem"]
    usable = isinstance(value, float) and 0 < value < float("inf")
    fits = entry["kernel"] == kernel and isinstance(entry["values"], dict)
    if not fits or (not usable and not isinstance(problem, str)):
        return None, TriedOut(None)
    outcome = TriedOut(value if usable else None, str(entry["unit"]), problem, built=bool(entry["built"]))
    return space.index_of(entry["values"]), outcome


def _best(
    request: ProposalRequest,
    kernel: str,
    space: SearchSpace,
    history: Sequence[Evaluated],
    reference: TriedOut,
) -> _Found:
    assert reference.value is not None
    timed = sorted((one.runtime_ms, one.index) for one in history if one.runtime_ms is not None)
    better = [(value, index) for value, index in timed if value < reference.value]
    wrong = len(history) - len(timed)
    said = "none beats the source as it stands"
    if better:
        value, index = better[0]
        said = f"the best is {_summary(_whole(space, index))} with {value:.6g} {reference.unit}"
    request.note(
        f"tune: {kernel}: {counted(len(history), 'configuration')} looked at, {wrong} of them refused or "
        f"wrong; {reference.value:.6g} {reference.unit} as it stands, {said}"
    )
    return _Found(
        reference.value, reference.unit, tuple((_whole(space, index), value) for value, index in better)
    )


# Candidates.


def _whole(space: SearchSpace, index: int) -> dict[str, int]:
    return {name: int(value) for name, value in space.values(index).items()}


def _summary(values: Mapping[str, int]) -> str:
    return f"tune {', '.join(f'{name}={value}' for name, value in sorted(values.items()))}"


def _candidate(request: ProposalRequest, kernel: str, values: Mapping[str, int]) -> EditCandidate | None:
    """The source with these values; ``None`` where a constant can't be tuned in it any more."""
    assert request.source.reading is not None
    known = request.source.reading.constants(kernel)
    places = {} if isinstance(known, str) else {one.name: one for one in known if one.refused is None}
    if not values.keys() <= places.keys():
        return None
    edits = tuple(Edit(*place) for name, value in values.items() for place in places[name].written(value))
    summary = _summary(values)
    return EditCandidate(
        id=summary.replace(" ", "-").replace(",", ""),
        kernel=kernel,
        line=min(places[name].line for name in values),
        summary=summary,
        edits=edits,
        declares=(TunedConstants(tuple(sorted(values.items()))),),
    )


def _evidence(request: ProposalRequest, found: _Found | None, value: float) -> Evidence:
    """The gain that the search saw, as far as the kernel's share of the critical path lets it through."""
    assert found is not None
    gain = max(0.0, min(1.0, 1.0 - value / found.reference))
    entries = (request.documents.get("analysis") or {}).get("kernels") or ()
    scores = [
        one.get("critical_path_score") for one in entries if one.get("kernel") == request.recorded_kernel
    ]
    share = next((float(one) for one in scores if isinstance(one, (int, float))), None)
    facts = {
        "critical_path_score": share,
        f"tried_{found.unit}": value,
        f"untuned_{found.unit}": found.reference,
    }
    expected = None if share is None else (0.0, max(0.0, min(1.0, share)) * gain)
    return Evidence(expected, facts)
