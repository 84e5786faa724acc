"""Thread traces and PC samples against what the kernels are known to execute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_selftest.bench import SMALL
from rpl_selftest.check import Check, Finding, NotPossibleError, judged
from rpl_selftest.checks.timing import dispatch_ns
from rpl_selftest.known_work import kernels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from rpl_selftest.bench import Bench

_LONG, _SHORT = "fma_long", "fma_short"
_FMA, _END = "v_fma_f64", "s_endpgm"
#: Cycles between samples: some thousands of samples of the two kernels.
_INTERVAL = 1 << 16
#: With 1000 samples three standard errors of a share of two thirds are 4.5 points.
_LEAST_SAMPLES, _MOST_OFF = 1000, 0.05


def thread_trace(bench: Bench) -> Finding:
    """Waves that were traced end once each: their number is that of the last instruction."""
    bench.record("traced", SMALL, "--deep-analysis", "--deep-top", "4")
    wrong, compared, reasons = [], 0, []
    for known in kernels(SMALL):
        if not known.fmas_per_lane:
            continue
        try:
            told = bench.rpl("att", "show", bench.folder / "traced", "--kernel", known.name, "--json").json()
        except NotPossibleError as error:
            reasons.append(str(error))
            continue
        fmas, waves = _hits(told["instructions"], _FMA), _hits(told["instructions"], _END)
        if waves:
            compared += waves
            if fmas != waves * known.fmas_per_lane:
                wrong.append(f"{known.name}: {fmas:,} of {waves * known.fmas_per_lane:,} in {waves} waves")
    if not compared:
        raise NotPossibleError(reasons[0] if reasons else "no wave of the kernels ran where the trace looks")
    return judged(not wrong, "; ".join(wrong) or f"all FMAs of {compared} traced waves", waves=compared)


def _hits(instructions: Iterable[Mapping[str, Any]], opcode: str) -> int:
    return sum(int(one["hits"]) for one in instructions if str(one["isa"]).split(maxsplit=1)[:1] == [opcode])


def pc_samples(bench: Bench) -> Finding:
    """Samples come at fixed steps of time: two kernels of as many waves share them as they share time."""
    options = ("--pc-sampling", "stochastic", "--pc-interval", str(_INTERVAL))
    recorded = bench.record("sampled", bench.sizes, *options)
    block = recorded.profile["sections"].get("pc_sampling") or {"kernels": []}
    samples = {one["kernel"]: int(one["samples"]) for one in block["kernels"] if one["samples"]}
    both = samples.get(_LONG, 0) + samples.get(_SHORT, 0)
    if both < _LEAST_SAMPLES:
        said = [one["fact"] for one in recorded.profile["diagnostics"] if "pc_samp" in one["code"]]
        raise NotPossibleError(
            f"{both} samples of the two kernels, {_LEAST_SAMPLES} are needed"
            + "".join(f"; {x}" for x in said[:1])
        )
    times = dispatch_ns(recorded)
    expected = sum(times[_LONG]) / (sum(times[_LONG]) + sum(times[_SHORT]))
    share = samples[_LONG] / both
    found = f"{share:.1%} of {both:,} samples; {expected:.1%} of the time"
    return judged(abs(share - expected) <= _MOST_OFF, found, share=share, expected=expected)


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
        "pc-samples",
        "rpl profile --pc-sampling stochastic; samples of fma_long and fma_short",
        f"shared as their time is, within {_MOST_OFF * 100:.0f} points",
        "docs/pc-sampling.md",
        pc_samples,
        essential=False,
        only_full=True,
    ),
)
