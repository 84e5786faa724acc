"""Whether two sides may be compared at all, and what their reader should know about differences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rpl_core.errors import DeviceMismatchError
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.metric import Origin
from rpl_core.values import frozen
from rpl_measure.samples import ItemKey, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rpl_core.model.trace import Agent
    from rpl_measure.side import Side

#: The switch for rpl's own tests and demos; documented in docs/compare.md.
SYNTHETIC_VARIABLE = "RPL_ALLOW_SYNTHETIC_GATES"

#: What makes a GPU the same device: a difference in any of these is another machine.
_IDENTITY = ("architecture", "product", "compute_units", "compute_partition", "memory_partition")


@frozen
class Comparability:
    """``blocking`` reasons leave no verdict; ``incomparable`` items are shown without one."""

    blocking: tuple[str, ...]
    incomparable: Mapping[ItemKey, str]
    diagnostics: tuple[Diagnostic, ...]


def check_comparable(base: Side, new: Side, *, allow_synthetic: bool, forced: bool) -> Comparability:
    """Raises ``DeviceMismatchError`` for recordings of different GPUs."""
    _refuse_other_device(base, new)
    blocking = [*_origin_reasons(base, new, allow_synthetic=allow_synthetic)]
    if not forced:
        blocking += [*_extent_reasons(base, new), *_loss_reasons(base), *_loss_reasons(new)]
    return Comparability(tuple(blocking), _incomparable(base, new), tuple(_differences(base, new)))


def _refuse_other_device(base: Side, new: Side) -> None:
    for field in _IDENTITY:
        left, right = _values(base, field), _values(new, field)
        if left and right and left != right:
            raise DeviceMismatchError(
                f"{base.name} and {new.name} were recorded on different devices: {field.replace('_', ' ')} "
                f"{_listed(left)} against {_listed(right)}",
                next_step="compare recordings of the same GPU in the same partition mode",
            )


def _values(side: Side, field: str) -> tuple[object, ...]:
    found = {getattr(gpu, field) for gpu in side.gpus} - {None}
    return tuple(sorted(found, key=str))


def _listed(values: tuple[object, ...]) -> str:
    return ", ".join(str(value) for value in values)


def _origin_reasons(base: Side, new: Side, *, allow_synthetic: bool) -> Iterator[str]:
    """Only measured data pass a gate."""
    for side in (base, new):
        if side.origin is Origin.MEASURED or (side.origin is Origin.SYNTHETIC and allow_synthetic):
            continue
        yield f"{side.name} is {side.origin.value} data, and only measured data give a verdict"


def _extent_reasons(base: Side, new: Side) -> Iterator[str]:
    """A lost process or GPU makes every sum smaller and would look like a gain."""
    for what, of in (("processes", _process_counts), ("GPUs", _gpu_counts)):
        left, right = of(base), of(new)
        for side, counts in ((base, left), (new, right)):
            if len(counts) > 1:
                yield f"the runs of {side.name} differ in {what} ({_listed(tuple(counts))})"
        if len(left) == len(right) == 1 and left != right:
            yield f"{base.name} ran with {left[0]} {what} and {new.name} with {right[0]}"


def _loss_reasons(side: Side) -> Iterator[str]:
    """Rows that a reader had to leave out make sums smaller; readers report such losses as errors."""
    of_runs = (diagnostic for fact in side.facts for diagnostic in fact.diagnostics)
    for diagnostic in dict.fromkeys((*side.diagnostics, *of_runs)):
        if diagnostic.severity is Severity.ERROR:
            yield f"{side.name} lost data: {diagnostic.fact}"


def _process_counts(side: Side) -> tuple[int, ...]:
    return tuple(sorted({run.processes for run in side.runs}))


def _gpu_counts(side: Side) -> tuple[int, ...]:
    """Without runs that do not name their GPU."""
    return tuple(sorted({len(fact.gpus) for fact in side.facts} - {0}))


def _incomparable(base: Side, new: Side) -> Mapping[ItemKey, str]:
    reasons = {}
    left, right = {run.sync_info for run in base.runs}, {run.sync_info for run in new.runs}
    if left != right:
        key = ItemKey(Kind.CRITICAL_PATH, Kind.CRITICAL_PATH.value)
        reasons[key] = "the sides hold different kinds of synchronisation records"
    with_calls = {fact.api_traced for side in (base, new) for fact in side.facts}
    if len(with_calls) > 1:
        key = ItemKey(Kind.MAKESPAN, Kind.MAKESPAN.value)
        reasons[key] = "some runs recorded API calls, which takes time between kernels, and some did not"
    return reasons


def _differences(base: Side, new: Side) -> Iterator[Diagnostic]:
    names = f"{base.name} and {new.name}"
    for code, what, of in _FACTS:
        left, right = of(base), of(new)
        if left and right and left != right:
            yield Diagnostic(code, f"{names} differ in {what}: {_listed(left)} against {_listed(right)}")
    for key, reason in _incomparable(base, new).items():
        remedy = "record both alike, with `rpl profile` or with `rpl profile --no-api`, or name --kernel NAME"
        of_calls = key.kind is Kind.MAKESPAN
        fact = f"no verdict about {key.name}: {reason}"
        yield Diagnostic("compare.incomparable", fact, remedy=remedy if of_calls else None)
    if not base.gpus or not new.gpus:
        side = base if not base.gpus else new
        yield Diagnostic(
            "compare.device_unknown",
            f"{side.name} does not say which GPU it ran on, so equal devices can't be checked",
            severity=Severity.INFO,
        )
    if _runs_by_files(base) & _runs_by_files(new):
        yield Diagnostic("compare.same_files", f"{names} share recorded files")
    for side in (base, new):
        yield from _damage(side)


def _damage(side: Side) -> Iterator[Diagnostic]:
    zero = sum(run.zero_durations for run in side.runs)
    unnamed = sum(run.unnamed for run in side.runs)
    if zero:
        fact = f"{zero} dispatches of {side.name} have a duration of zero"
        yield Diagnostic("dispatch.zero_duration", fact, where=side.label, count=zero)
    if unnamed:
        fact = f"{unnamed} dispatches of {side.name} name no kernel and count for none"
        yield Diagnostic("dispatch.unnamed", fact, where=side.label, count=unnamed)
    if side.incomplete:
        fact = f"{side.name} is incomplete: {side.incomplete}"
        yield Diagnostic("compare.incomplete", fact, where=side.label)


def _runs_by_files(side: Side) -> set[frozenset[str]]:
    """Every run as all of its files: what describes the GPUs is equal for all runs of a machine."""
    runs = (frozenset(doc.sha256 for doc in fact.artefacts if doc.sha256) for fact in side.facts)
    return {files for files in runs if files}


def _options(*names: str) -> Callable[[Side], tuple[object, ...]]:
    def of(side: Side) -> tuple[object, ...]:
        given = {
            f"{name}={manifest.options[name]}"
            for manifest in side.manifests
            for name in names
            if manifest.options.get(name) is not None
        }
        return tuple(sorted(given)) or (("none",) if side.manifests else ())

    return of


def _of_manifests(*fields: str) -> Callable[[Side], tuple[object, ...]]:
    def of(side: Side) -> tuple[object, ...]:
        texts = {
            " ".join(str(value) for value in (getattr(m, field) for field in fields) if value)
            for m in side.manifests
        }
        return tuple(sorted(texts))

    return of


def _of_facts(read: Callable[[Side], set[object]]) -> Callable[[Side], tuple[object, ...]]:
    return lambda side: tuple(sorted(read(side) - {None}, key=str))


def _clock(gpu: Agent) -> str | None:
    return None if gpu.clock_mhz is None else f"{gpu.clock_mhz} MHz"


#: Differences worth a warning: code, what to call it, how to read it. An empty value means "unknown".
_FACTS: tuple[tuple[str, str, Callable[[Side], tuple[object, ...]]], ...] = (
    ("compare.clock_differs", "the highest engine clock", _of_facts(lambda s: {_clock(g) for g in s.gpus})),
    ("compare.machine_differs", "the machine", _of_facts(lambda s: {h for f in s.facts for h in f.hosts})),
    ("compare.format_differs", "the recorded format", _of_facts(lambda s: {f.format for f in s.facts})),
    (
        "compare.tracing_differs",
        "what was traced besides kernels",
        _of_facts(lambda s: {_traced(f.copies_traced, f.api_traced) for f in s.facts}),
    ),
    ("compare.collector_differs", "the collector", _of_manifests("collector", "collector_version")),
    ("compare.tool_version_differs", "the version of rpl that recorded", _of_manifests("tool_version")),
    ("compare.overrides_differ", "device overrides", _options("clock_mhz", "memory_bandwidth_gbps")),
)


def _traced(copies: bool, api: bool) -> str:
    return " and ".join(name for name, on in (("copies", copies), ("HIP API", api)) if on) or "nothing"
