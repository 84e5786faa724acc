"""Thread traces and PC samples against what the kernels are known to execute, and against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_selftest.bench import TRACED
from rpl_selftest.check import Check, Finding, NotPossibleError, judged
from rpl_selftest.checks.timing import dispatch_ns, overhead
from rpl_selftest.known_work import kernels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from rpl_selftest.bench import Bench, Recorded

_LONG, _SHORT = "fma_long", "fma_short"
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
    known = next(one for one in kernels(TRACED) if one.name == _LONG)
    fmas, waves = _hits(instructions, _FMA), _hits(instructions, _END)
    if not waves:
        raise NotPossibleError("no wave of the kernel ran to its end where the trace looks")
    found = f"{fmas:,} of {waves * known.fmas_per_lane:,} FMAs in {waves} traced waves"
    return judged(fmas == waves * known.fmas_per_lane, found, waves=waves, fmas=fmas)


def _hits(instructions: Iterable[Mapping[str, Any]], opcode: str) -> int:
    return sum(int(one["hits"]) for one in instructions if str(one["isa"]).split(maxsplit=1)[:1] == [opcode])


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
    by_samples = _shares((str(one["instruction"] or ""), float(one["samples"])) for one in places)
    by_trace = _shares(
        (str(one["isa"]), float(one["latency"] + (one["idle"] or 0))) for one in instructions if one["hits"]
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
