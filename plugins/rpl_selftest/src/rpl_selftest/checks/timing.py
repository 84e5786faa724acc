"""Times, thread traces and PC samples against what the program and the known kernels say themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core.model.metric import Origin
from rpl_core.model.trace import TraceRole
from rpl_measure.rank_tests import median
from rpl_selftest.bench import TRACED, Bench, Recorded, Sizes, kernels
from rpl_selftest.check import Check, Finding, NotPossibleError, judged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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


# Thread traces and PC samples against what the kernels are known to execute, and against each other.


_FMA, _END = "v_fma_f64", "s_endpgm"
#: Cycles between samples: some thousands of samples of the two kernels.
_INTERVAL = 1 << 16
#: With 1000 samples three standard errors of a share of two thirds are 4.5 points.
_LEAST_SAMPLES, _MOST_OFF = 1000, 0.05
#: A sample of a wave that waits falls on the instruction that is next; a trace counts the same time as its
#: latency, or as idle before it. How far apart the two cut it on hardware was never seen (chosen).
_MOST_APART = 0.15
_PIPES = (("v_", "vector"), ("s_", "scalar"))
#: Chosen: sampling reads a register now and then; a trace writes bytes for each instruction, and its begin
#: and end belong to the launch.
_MOST_SAMPLING, _MOST_TRACING = 0.10, 1.00


def _traced(bench: Bench) -> tuple[Recorded, tuple[Mapping[str, Any], ...]]:
    """The recording of a trace of fma_long, and its instructions with what they cost."""

    def made() -> tuple[Recorded, tuple[Mapping[str, Any], ...]]:
        recorded = bench.record("traced", TRACED, "--deep-analysis", "--deep-top", "1")
        reasons = [one["fact"] for one in recorded.profile["diagnostics"] if one["code"].startswith("att")]
        lost = [one["fact"] for one in recorded.profile["diagnostics"] if "thread_trace" in one["code"]]
        try:
            shown = bench.rpl("att", "show", bench.folder / "traced", "--kernel", _LONG, "--json").json()
        except NotPossibleError as error:
            raise NotPossibleError(next(iter((*lost, *reasons)), str(error))) from error
        return recorded, tuple(shown["instructions"])

    return bench.once("trace", made)


def thread_trace(bench: Bench) -> Finding:
    """Waves that were traced end once each: their number is that of the last instruction."""
    _, instructions = _traced(bench)
    known = next(kernel for kernel in kernels(TRACED) if kernel.name == _LONG)
    fmas, waves = _hits(instructions, _FMA), _hits(instructions, _END)
    if not waves:
        raise NotPossibleError("no wave of the kernel ran to its end where the trace looks")
    found = f"{fmas:,} of {waves * known.fmas_per_lane:,} FMAs in {waves} traced waves"
    return judged(fmas == waves * known.fmas_per_lane, found, waves=waves, fmas=fmas)


def _hits(instructions: Iterable[Mapping[str, Any]], opcode: str) -> int:
    return sum(
        int(instruction["hits"])
        for instruction in instructions
        if str(instruction["isa"]).split(maxsplit=1)[:1] == [opcode]
    )


def trace_overhead(bench: Bench) -> Finding:
    """The second launch is the traced one; the file of times is that of the traced run, which is the last."""
    recorded, _ = _traced(bench)
    return overhead(bench, recorded, _MOST_TRACING, sizes=TRACED, launch=1)


def _sampled(bench: Bench) -> tuple[Recorded, Mapping[str, Mapping[str, Any]]]:
    """The recording of samples, and the block of each sampled kernel."""
    options = ("--pc-sampling", "stochastic", "--pc-interval", str(_INTERVAL))
    recorded = bench.record("sampled", bench.sizes, *options)
    block = recorded.profile["sections"].get("pc_sampling") or {"kernels": []}
    sampled = {one["kernel"]: one for one in block["kernels"] if one["samples"]}
    both = sum(int(sampled[name]["samples"]) for name in (_LONG, _SHORT) if name in sampled)
    if both < _LEAST_SAMPLES:
        said = [one["fact"] for one in recorded.profile["diagnostics"] if "pc_samp" in one["code"]]
        raise NotPossibleError(
            f"{both} samples of the two kernels, {_LEAST_SAMPLES} are needed"
            + "".join(f"; {x}" for x in said[:1])
        )
    return recorded, sampled


def pc_samples(bench: Bench) -> Finding:
    """Samples come at fixed steps of time: two kernels of as many waves share them as they share time."""
    recorded, sampled = _sampled(bench)
    of_long, of_short = (int(sampled.get(name, {"samples": 0})["samples"]) for name in (_LONG, _SHORT))
    times = dispatch_ns(recorded)
    expected = sum(times[_LONG]) / (sum(times[_LONG]) + sum(times[_SHORT]))
    share = of_long / (of_long + of_short)
    found = f"{share:.1%} of {of_long + of_short:,} samples; {expected:.1%} of the time"
    return judged(abs(share - expected) <= _MOST_OFF, found, share=share, expected=expected)


def samples_and_trace(bench: Bench) -> Finding:
    """By the pipe of the instruction: where samples say that waves are, and where the trace says so.

    The loop runs 65 536 times and more, so that what is before and behind it is nothing.
    """
    _, sampled = _sampled(bench)
    _, instructions = _traced(bench)
    places = sampled[_LONG]["places"] if _LONG in sampled else ()
    by_samples = _shares((str(place["instruction"] or ""), float(place["samples"])) for place in places)
    by_trace = _shares(
        (str(instruction["isa"]), float(instruction["latency"] + (instruction["idle"] or 0)))
        for instruction in instructions
        if instruction["hits"]
    )
    if not by_samples or not by_trace:
        what = "trace has cycles" if by_samples else "sample is at an instruction"
        raise NotPossibleError(f"no {what} of {_LONG}")
    pipes = sorted({*by_samples, *by_trace})
    apart = max(abs(by_samples.get(pipe, 0.0) - by_trace.get(pipe, 0.0)) for pipe in pipes)
    found = ", ".join(f"{x}: {by_samples.get(x, 0.0):.1%} and {by_trace.get(x, 0.0):.1%}" for x in pipes)
    return judged(apart <= _MOST_APART, f"{found} (samples and trace)", apart=apart)


def _shares(weights: Iterable[tuple[str, float]]) -> Mapping[str, float]:
    """The share of each pipe; nothing where all weights are 0."""
    found: dict[str, float] = {}
    for isa, weight in weights:
        pipe = next((pipe for prefix, pipe in _PIPES if isa.startswith(prefix)), "memory")
        found[pipe] = found.get(pipe, 0.0) + weight
    total = sum(found.values())
    return {pipe: weight / total for pipe, weight in found.items()} if total else {}


def sampling_overhead(bench: Bench) -> Finding:
    """The file of times is that of the sampled run, which is the last."""
    recorded, _ = _sampled(bench)
    return overhead(bench, recorded, _MOST_SAMPLING)


SAMPLING = (
    Check(
        "thread-trace",
        "rpl profile --deep-analysis; executions of v_fma_f64 in traced waves",
        "as many per wave as the loop has steps",
        "docs/att.md",
        thread_trace,
        essential=False,
        only_full=True,
    ),
    Check(
        "overhead-trace",
        "hipEvent times of the traced launch, and without a trace",
        f"fma_long takes at most {_MOST_TRACING:.0%} longer",
        "docs/att.md",
        trace_overhead,
        essential=False,
        only_full=True,
    ),
    Check(
        "pc-samples",
        "rpl profile --pc-sampling stochastic; samples of fma_long and fma_short",
        f"shared as their time is, within {_MOST_OFF * 100:.0f} points",
        "docs/pc-sampling.md",
        pc_samples,
        essential=False,
        only_full=True,
    ),
    Check(
        "samples-and-trace",
        "both; samples and cycles of fma_long by the pipe of the instruction",
        f"the same shares, within {_MOST_APART * 100:.0f} points",
        "docs/pc-sampling.md",
        samples_and_trace,
        essential=False,
        only_full=True,
    ),
    Check(
        "overhead-samples",
        "hipEvent times with and without PC sampling",
        f"fma_long takes at most {_MOST_SAMPLING:.0%} longer",
        "docs/pc-sampling.md",
        sampling_overhead,
        essential=False,
        only_full=True,
    ),
)
