"""Shapes of noise that the optimizer's decision has to stand: what times of unchanged programs do.

Each shape draws, for a number of runs in their order, the times of the kernel and of the rest of the
application as multiples of the true ones (``rpl_testkit.pair_model``). The sizes are chosen so that a fixed
order of the pairs, a threshold or a test without its assumptions accepts a null candidate far too often.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

Array = np.ndarray
Generator = np.random.Generator
#: (generator, runs) -> one row per run: kernel, rest.
Shape = Callable[[Generator, int], Array]
#: (generator, runs) -> one factor per run.
Series = Callable[[Generator, int], Array]

#: Noise of kernel and rest on top of what disturbs both.
_QUIET = 0.01
_LEAST = 0.01


def own(series: Series) -> Shape:
    """Kernel and rest have such noise each on its own."""
    return lambda rng, runs: np.stack([series(rng, runs), series(rng, runs)], axis=1)


def common(series: Series) -> Shape:
    """Both are disturbed alike, with quiet noise of their own."""

    def drawn(rng: Generator, runs: int) -> Array:
        return series(rng, runs)[:, None] * (1 + _QUIET * rng.standard_normal((runs, 2)))

    return drawn


def normal(cv: float) -> Series:
    return lambda rng, runs: np.maximum(1 + cv * rng.standard_normal(runs), _LEAST)


def quantised(rng: Generator, runs: int) -> Array:
    return np.round(1 + 0.02 * rng.standard_normal(runs), 2)


def student(freedom: float, scale: float) -> Series:
    return lambda rng, runs: np.exp(np.clip(scale * rng.standard_t(freedom, runs), -2, 4))


def outliers(share: float, factor: float) -> Series:
    return lambda rng, runs: np.where(rng.random(runs) < share, factor, 1.0)


def ramp(change: float) -> Series:
    return lambda _rng, runs: 1 + change * np.arange(runs) / runs


def walk(step: float) -> Series:
    return lambda rng, runs: np.exp(np.cumsum(step * rng.standard_normal(runs)))


def warm_up(_rng: Generator, runs: int) -> Array:
    return 1 + 0.2 * np.exp(-np.arange(runs) / 8)


def step(change: float) -> Series:
    return lambda rng, runs: np.where(np.arange(runs) >= rng.integers(runs), 1 + change, 1.0)


def every(period: int, slow: tuple[int, ...] = (0,), by: float = 0.1) -> Series:
    """Some runs of each period are slower; where the period begins is anyone's guess."""
    return lambda rng, runs: 1 + by * np.isin((np.arange(runs) + rng.integers(period)) % period, slow)


def sine(period: float, amplitude: float = 0.05) -> Series:
    return lambda rng, runs: 1 + amplitude * np.sin(2 * np.pi * (np.arange(runs) / period + rng.random()))


def sticky(slow: float, stay: float, by: float) -> Series:
    """Two modes, ``slow`` of the runs in the slower one, which a run leaves with 1 - ``stay``."""

    def drawn(rng: Generator, runs: int) -> Array:
        enter, found = (1 - stay) * slow / (1 - slow), np.empty(runs)
        now = rng.random() < slow
        for run, chance in enumerate(rng.random(runs)):
            found[run] = 1 + by * now
            now = chance < (stay if now else enter)
        return found

    return drawn


def autoregressive(rho: float, sigma: float) -> Series:
    def drawn(rng: Generator, runs: int) -> Array:
        noise, found = sigma * np.sqrt(1 - rho**2) * rng.standard_normal(runs), np.empty(runs)
        found[0] = sigma * rng.standard_normal()
        for run in range(1, runs):
            found[run] = rho * found[run - 1] + noise[run]
        return np.exp(found)

    return drawn


def growing(rng: Generator, runs: int) -> Array:
    return 1 + (0.01 + 0.08 * np.arange(runs) / runs) * rng.standard_normal(runs)


#: By name; every one of them is a null candidate's noise, and the gain that a case declares comes on top.
SHAPES: dict[str, Shape] = {
    "constant": own(lambda _rng, runs: np.ones(runs)),
    "rounded to 1 %": own(quantised),
    "normal, CV 0.5 %": own(normal(0.005)),
    "normal, CV 1 %": own(normal(0.01)),
    "normal, CV 2 %": own(normal(0.02)),
    "normal, CV 5 %": own(normal(0.05)),
    "normal, CV 10 %": own(normal(0.10)),
    "uniform, 5 % each way": own(lambda rng, runs: 1 + 0.05 * (2 * rng.random(runs) - 1)),
    "log-normal, 5 %": own(lambda rng, runs: np.exp(0.05 * rng.standard_normal(runs))),
    "Laplace, 3 %": own(lambda rng, runs: np.exp(rng.laplace(0, 0.03, runs))),
    "Student, 3 degrees": own(student(3, 0.02)),
    "Student, 1.5 degrees": own(student(1.5, 0.015)),
    "slow exponential tail": own(lambda rng, runs: 1 + 0.05 * rng.exponential(1, runs)),
    "slow Pareto tail": own(lambda rng, runs: 1 + 0.01 * rng.pareto(1.5, runs)),
    "5 % of runs 30 % slower": common(outliers(0.05, 1.3)),
    "20 % of runs 10 % slower": common(outliers(0.2, 1.1)),
    "1 % of runs 5 times slower": common(outliers(0.01, 5.0)),
    "5 % of runs 10 % faster": common(outliers(0.05, 0.9)),
    "drift to 20 % slower": common(ramp(0.2)),
    "drift to 20 % faster": common(ramp(-0.2)),
    "random walk, 0.5 % a run": common(walk(0.005)),
    "random walk, 2 % a run": common(walk(0.02)),
    "warming up by 20 %": common(warm_up),
    "step to 10 % slower": common(step(0.1)),
    "step to 10 % faster": common(step(-0.1)),
    "every 2nd run slower": common(every(2)),
    "every 3rd run slower": common(every(3)),
    "every 4th run slower": common(every(4)),
    "every 5th run slower": common(every(5)),
    "1st and 4th of 4 slower": common(every(4, (0, 3))),
    "2 of 4 in a row slower": common(every(4, (0, 1))),
    "sine of 2.1 runs": common(sine(2.1)),
    "sine of 3.7 runs": common(sine(3.7)),
    "sine of 40 runs": common(sine(40, 0.1)),
    "two modes, 30 % slow": common(outliers(0.3, 1.1)),
    "two modes that last": common(sticky(0.3, 0.8, 0.1)),
    "autocorrelated, 0.9": own(autoregressive(0.9, 0.05)),
    "growing noise": own(growing),
}


#: Kernels of the real recording, and their shape's name.
REAL_KERNELS = ("triad", "fma", "chase", "tiny")


def real_runs() -> list[dict[str, str]] | None:
    """The rows of noise_h200, in the order of measurement; ``None`` where the recording is absent."""
    root = Path(os.environ.get("RPL_SHARED_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    path = root / "noise_h200" / "runs.csv"
    if not path.is_file():
        return None
    with path.open(newline="", encoding="utf-8") as stream:
        return sorted(csv.DictReader(stream), key=lambda row: float(row["started_s"]))


def real_shapes(rows: list[dict[str, str]]) -> Iterator[tuple[str, Shape]]:
    """The deviation of each run from the median of its program, a stretch of it for each candidate."""
    for kernel in REAL_KERNELS:
        times = np.array([[float(row[f"{kernel}_ns"]), float(row["makespan_ns"])] for row in rows])
        times[:, 1] -= times[:, 0]  # the rest
        programs = np.array([row["program"] for row in rows])
        factors = np.empty_like(times)
        for program in np.unique(programs):
            own_rows = programs == program
            factors[own_rows] = times[own_rows] / np.median(times[own_rows], axis=0)
        yield f"H200, {kernel}", _stretch(factors)


def _stretch(factors: Array) -> Shape:
    def drawn(rng: Generator, runs: int) -> Array:
        begin = rng.integers(len(factors))
        return np.take(factors, np.arange(begin, begin + runs), axis=0, mode="wrap")

    return drawn
