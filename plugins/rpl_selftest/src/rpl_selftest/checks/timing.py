"""Times that rpl reports against times that the program took itself, and what taking them costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.model.origin import Origin
from rpl_core.model.trace import TraceRole
from rpl_measure.estimates import median
from rpl_selftest.check import Check, Finding, NotPossibleError, judged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_selftest.bench import Bench, Recorded, Sizes

#: The steps of the events' clock are 0.01 us to 1 us, of some 4 ms (chosen: half of what a fault of 1 % is).
_MOST_SLOPE = 0.005
#: A compute-bound kernel must not notice who watches it (chosen).
_MOST_OVERHEAD = 0.02
#: Counting serialises launches and may hold clocks (chosen).
_MOST_COUNTING = 0.10
#: Of the data sheet: copies reach some 80 % of it, and nothing exceeds it by more than its rounding.
_LEAST_MEMORY, _MOST_OF_SHEET = 0.60, 1.02
_LONG, _SHORT = "fma_long", "fma_short"


def require_times(recorded: Recorded) -> None:
    """Raises where times are a model's: they can neither agree with events nor disagree."""
    if recorded.recording.origin is Origin.MODELLED:
        raise NotPossibleError("times of this device are modelled bounds, which no event can confirm")


def dispatch_ns(recorded: Recorded) -> Mapping[str, tuple[int, ...]]:
    """The time of each launch of the first timing run, by kernel."""
    trace = next(iter(recorded.recording.timing_runs), None)
    if trace is None:
        raise NotPossibleError("the recording holds no timing run")
    found: dict[str, list[int]] = {}
    times = (trace.dispatches.end_ns - trace.dispatches.begin_ns).tolist()
    for kernel, time_ns in zip(trace.dispatches.kernel.tolist(), times, strict=True):
        found.setdefault(trace.kernels[kernel].name, []).append(time_ns)
    return {name: tuple(values) for name, values in found.items()}


def events(bench: Bench) -> Finding:
    """Two lengths of one loop: what an event costs is in both, and not in their difference."""
    recorded = bench.timing()
    require_times(recorded)
    launches, timed = dispatch_ns(recorded), recorded.event_ns
    lacking = [name for name in (_LONG, _SHORT) if not launches.get(name) or not timed.get(name)]
    if lacking:
        raise NotPossibleError(f"the recording or the program has no time of {', '.join(lacking)}")
    by_events = median(timed[_LONG]) - median(timed[_SHORT])
    by_rpl = median(launches[_LONG]) - median(launches[_SHORT])
    if by_events <= 0:
        raise NotPossibleError("by its own events the longer loop took no longer")
    slope = by_rpl / by_events - 1
    around = median(timed[_LONG]) - median(launches[_LONG])
    return judged(
        abs(slope) <= _MOST_SLOPE,
        f"{by_rpl:,.0f} ns of {by_events:,.0f} ns ({slope:+.3%}); an event takes {around:,.0f} ns more",
        slope=slope,
        around_ns=around,
    )


def launches_seen(bench: Bench) -> Finding:
    recorded = bench.timing()
    seen, expected = dispatch_ns(recorded), {name: len(times) for name, times in recorded.event_ns.items()}
    wrong = [
        f"{name}: {len(seen.get(name, ()))} of {n}"
        for name, n in expected.items()
        if len(seen.get(name, ())) != n
    ]
    total = sum(expected.values())
    return judged(not wrong, "; ".join(wrong) or f"{total} of {total}", launches=total)


def _bare_ns(bench: Bench, sizes: Sizes) -> float:
    def run() -> float:
        from rpl_selftest.bench import read_times

        program, _ = bench.build()
        times = bench.folder / f"bare-{sizes.iterations}.times"
        bench.run(program, *bench.command(sizes, times)[1:])
        return median(read_times(times)[_LONG])

    if bench.emulated:
        raise NotPossibleError("times of this device are modelled bounds, which no event can confirm")
    return bench.once(f"bare times {sizes.iterations}", run)


def overhead(
    bench: Bench, recorded: Recorded, most: float, *, sizes: Sizes | None = None, launch: int | None = None
) -> Finding:
    """What a collector adds to fma_long: to the middle of its launches, or to one of them."""
    require_times(recorded)
    times = recorded.event_ns.get(_LONG, ())
    if len(times) <= (launch or 0):
        raise NotPossibleError(f"times of {_LONG} that the program took: {len(times)}, too few")
    bare = _bare_ns(bench, sizes or bench.sizes)
    watched = median(times) if launch is None else times[launch]
    added = watched / bare - 1
    found = f"{bare:,.0f} ns alone, {watched:,.0f} ns watched ({added:+.2%}); {recorded.wall_s:.1f} s in all"
    return judged(added <= most, found, added=added, wall_s=recorded.wall_s)


def timing_overhead(bench: Bench) -> Finding:
    return overhead(bench, bench.timing(), _MOST_OVERHEAD)


def counting_overhead(bench: Bench) -> Finding:
    """The file of times is that of the last counter pass."""
    recorded = bench.counted()
    if not any(trace.role is TraceRole.COUNTERS for trace in recorded.recording.traces):
        raise NotPossibleError("no counter pass was recorded")
    return overhead(bench, recorded, _MOST_COUNTING)


def api_overhead(bench: Bench) -> Finding:
    return overhead(bench, bench.record("calls", bench.sizes, "--api"), _MOST_OVERHEAD)


def ceilings(bench: Bench) -> Finding:
    """Measured into a folder of its own: the user's kept ceilings stay as they are."""
    device = bench.timing().profile["provenance"]["device"]
    if device is None:
        raise NotPossibleError("rpl does not know this device")
    if bench.timing().recording.origin is not Origin.MEASURED:
        raise NotPossibleError("rates of a device that is not measured are nobody's ceilings")
    settings = {"XDG_CONFIG_HOME": str(bench.folder / "settings")}
    measured = bench.rpl("ceilings", "measure", "--device", device, "--json", environment=settings).json()
    listed = bench.rpl("ceilings", "--device", device, "--json", environment=settings).json()["ceilings"]
    sheet = {(one["ceiling"], one["pipe"]): one["rate"] for one in listed if one["origin"] == "spec"}
    memory = next((one["rate"] for one in listed if one["origin"] == "spec" and one["pipe"] is None), None)
    if memory is None:
        raise NotPossibleError(f"the data sheet of {device} has no rate of its memory")
    usable = [one for one in measured["rates"] if one["refused"] is None]
    streams = [one["best"] for one in usable if one["pipe"] is None and (one["what"], None) not in sheet]
    shares = {
        f"{one['what']} {one['pipe'] or ''}".strip(): one["best"] / sheet[one["what"], one["pipe"]]
        for one in usable
        if sheet.get((one["what"], one["pipe"]))
    }
    shares["memory"] = max(streams, default=0.0) / memory
    wrong = [name for name, share in shares.items() if share > _MOST_OF_SHEET]
    wrong += ["memory"] if shares["memory"] < _LEAST_MEMORY else []
    return judged(not wrong, ", ".join(f"{name} {share:.1%}" for name, share in shares.items()), **shares)


TIMING = (
    Check(
        "launches",
        "rpl profile of the program of known work",
        "as many launches of each kernel as the program made",
        "docs/data-formats.md",
        launches_seen,
    ),
    Check(
        "times",
        "the same run: times of launches against hipEvent times that the program took",
        f"fma_long - fma_short agrees within {_MOST_SLOPE:.1%}",
        "docs/reference/formats.md",
        events,
    ),
    Check(
        "overhead-timing",
        "hipEvent times with and without rpl profile",
        f"fma_long takes at most {_MOST_OVERHEAD:.0%} longer",
        "docs/compare.md",
        timing_overhead,
    ),
    Check(
        "overhead-calls",
        "hipEvent times with and without the recording of API calls",
        f"fma_long takes at most {_MOST_OVERHEAD:.0%} longer",
        "docs/USER_GUIDE.md",
        api_overhead,
        essential=False,
        only_full=True,
    ),
    Check(
        "overhead-counters",
        "hipEvent times with and without counters",
        f"fma_long takes at most {_MOST_COUNTING:.0%} longer",
        "docs/reference/counters.md",
        counting_overhead,
        essential=False,
    ),
    Check(
        "ceilings",
        "rpl ceilings measure",
        f"memory reaches {_LEAST_MEMORY:.0%} of the data sheet, nothing more than {_MOST_OF_SHEET:.0%}",
        "docs/ROOFLINE_DESIGN.md",
        ceilings,
        essential=False,
        only_full=True,
    ),
)
