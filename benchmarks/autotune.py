"""Regret of search strategies on recorded full spaces, beside random search, Optuna and Kernel Tuner.

    python benchmarks/autotune.py --seeds 50 ../shared/data/autotune/*.json.gz
    python benchmarks/autotune.py --trust --seeds 10 SPACE...    (of benchmarks/autotune_spaces.py)
    python benchmarks/autotune.py --noise 100
    python benchmarks/autotune.py --confirm ../shared/data/noise_h200/runs.csv

Every configuration of such a space was measured on a real GPU, so a search can be simulated and compared with
the true optimum. Printed is the median over seeds of best / optimum - 1 after 25, 50, 100 and 200
evaluations of one search with a budget of 200. Strategies of Kernel Tuner run in its own simulation mode; a
configuration that it asks for twice counts once, as for everybody. Peers that are not installed are left out
with a note. ``--trust`` compares what searches of 25, 50 and 100 evaluations say of their model with its R²
over the whole space, and counts how many measurements lie in the interval of their prediction. ``--noise``
counts how often the model is believed where times are nothing but noise. ``--confirm`` gives the final
measurement times of a real GPU: programs in turns, one of them the base again.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gzip
import io
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_autotune.interfaces import Evaluated, Strategy, StrategyRequest, random_draws
from rpl_autotune.outcome import compare_times
from rpl_autotune.recorded_space import RecordedSpace, read_recorded
from rpl_autotune.regression import TimeModel, Trust, held_out, training_of
from rpl_autotune.space_file import space_of
from rpl_autotune.strategies import OptunaStrategy, RegressionStrategy
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_autotune.interfaces import SearchSpace

#: Rounds of the final measurement, as the command does them; columns of the recorded times with work that
#: differs; and the verdicts that may be wrong: 2.5 % on each side by the test, more by drift of a real GPU.
ROUNDS, CONFIRMED, WRONG = 10, ("triad_ns", "fma_ns", "chase_ns", "makespan_ns"), 0.1
BUDGET, MARKS = 200, (25, 50, 100, 200)
GOAL, GOAL_AT = 0.05, 100
#: Goals of ``--trust``: ``clear`` with a true R² below ``BAD_R2`` in at most this part of all searches, and
#: in half of those of 100 evaluations with ``GOOD_R2`` and more.
TRUST_AT, BAD_R2, GOOD_R2, MOST_WRONG = (25, 50, 100), 0.3, 0.6, 0.03
#: The part of measurements that may be inside of 95 % intervals.
COVERED = (0.93, 0.97)
OWN = "rpl regression"
#: Those of Kernel Tuner 1.x that need nothing beyond it. ``basinhopping`` does not end in simulation.
KERNEL_TUNER = (
    *("bayes_opt", "diff_evo", "dual_annealing", "firefly_algorithm", "genetic_algorithm", "greedy_ils"),
    *("greedy_mls", "hybrid_vndx", "adaptive_tabu_greywolf", "mls", "ordered_greedy_mls", "pso"),
    "simulated_annealing",
)
#: Seconds after which one search of a peer is given up.
_PATIENCE_S = 900


@cache
def recorded(path: str) -> tuple[RecordedSpace, SearchSpace]:
    found = read_recorded(Path(path))
    return found, space_of(found.description(), None, path)


def times_of(path: str) -> list[float | None]:
    found, _ = recorded(path)
    return [result.time_ms for result in found.results.values()]


def regrets(times: list[float | None], optimum: float) -> list[float]:
    """best / optimum - 1 after each evaluation; infinite while nothing has run."""
    best, found = float("inf"), []
    for value in times:
        best = min(best, float("inf") if value is None else value)
        found.append(best / optimum - 1)
    return found + found[-1:] * (BUDGET - len(found))


def _one_thread() -> None:
    """One search per core: threads of linear algebra would only wait for each other."""
    import scipy.linalg  # noqa: F401 - its threads are meant, too
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)


def own_search(strategy: Callable[[], Strategy], path: str, seed: int) -> list[float]:
    _, space = recorded(path)
    times = times_of(path)
    optimum = min(t for t in times if t is not None)
    search = strategy().start(StrategyRequest(space, BUDGET, seed))
    history: list[Evaluated] = []
    while len(history) < BUDGET and (proposed := search.propose(history, (), 1)):
        history += [Evaluated(p.index, times[p.index]) for p in proposed]
        if history[-1].runtime_ms == optimum:
            break  # what follows can change no regret
    return regrets([item.runtime_ms for item in history], optimum)


def random_search(path: str, seed: int) -> list[float]:
    times = times_of(path)
    order = np.random.default_rng(seed).permutation(len(times))[:BUDGET]
    return regrets([times[int(n)] for n in order], min(t for t in times if t is not None))


@cache
def _tune_cache() -> Callable[..., Any]:
    """Kernel Tuner's simulation, which reads a space once instead of twice per search: it only reads it."""
    from kernel_tuner import interface, util

    util.read_cache = cache(util.read_cache)
    found: Callable[..., Any] = interface.tune_cache
    return found


def kernel_tuner_search(strategy: str, path: str, seed: int) -> list[float]:
    found, _ = recorded(path)
    random.seed(seed)
    np.random.seed(seed)  # what Kernel Tuner draws from
    options = {"max_fevals": BUDGET}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), patience():
        results, _ = _tune_cache()(cache_path=_unpacked(path), strategy=strategy, strategy_options=options)
    seen: dict[tuple[Any, ...], float | None] = {}
    for result in results:
        value = result["time"]
        row = tuple(result[name] for name in found.parameters)
        seen.setdefault(row, float(value) if isinstance(value, (int, float)) else None)
    times = times_of(path)
    return regrets(list(seen.values())[:BUDGET], min(t for t in times if t is not None))


@contextlib.contextmanager
def patience() -> Iterator[None]:
    def give_up(_number: int, _frame: object) -> None:
        raise TimeoutError(f"no end within {_PATIENCE_S} s")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(_PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)


@cache
def _unpacked(path: str) -> str:
    """Kernel Tuner reads plain JSON only."""
    if not path.endswith(".gz"):
        return path
    folder = Path(tempfile.gettempdir()) / f"rpl-benchmark-autotune-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    plain = folder / Path(path).stem
    if not plain.exists():
        partly = plain.with_suffix(f".{os.getpid()}")
        partly.write_bytes(gzip.decompress(Path(path).read_bytes()))
        partly.replace(plain)
    return str(plain)


def peers() -> dict[str, Callable[[str, int], list[float]]]:
    """Everybody who is installed, by the name in the table."""
    found: dict[str, Callable[[str, int], list[float]]] = {"random": random_search}
    if OptunaStrategy().missing() is None:
        found["Optuna TPE"] = partial(own_search, OptunaStrategy)
    else:
        print("note: Optuna is not installed, and left out")
    try:
        from kernel_tuner.interface import strategy_map
    except ImportError:
        print("note: Kernel Tuner is not installed, and left out")
        return found
    for name in KERNEL_TUNER:
        known = next((key for key in strategy_map if key.endswith(name)), None)
        if known is not None:
            found[f"KT {name}"] = partial(kernel_tuner_search, known)
    return found


def measure(
    pool: ProcessPoolExecutor, search: Callable[[str, int], list[float]], path: str, seeds: int
) -> list[float] | str:
    """Median regret at each mark, or why there is none."""
    try:
        every = np.asarray(list(pool.map(partial(search, path), range(seeds))))
    except Exception as error:  # noqa: BLE001 - a peer that fails is told, and costs only itself
        return f"{type(error).__name__}: {error}"[:60]
    return [float(np.median(every[:, mark - 1])) for mark in MARKS]


def compare(paths: list[str], seeds: int, jobs: int, only: str | None) -> bool:
    """Print all tables; true where every goal is reached."""
    everybody = {OWN: partial(own_search, RegressionStrategy), **peers()}
    reached = True
    with ProcessPoolExecutor(jobs, initializer=_one_thread) as pool:
        for path in paths:
            print(f"\n{Path(path).name}: {len(times_of(path))} configurations, {seeds} seeds", flush=True)
            print(f"{'':28}" + "".join(f"{mark:>9}" for mark in MARKS) + "   seconds")
            table = {}
            for name, search in everybody.items():
                if only is not None and only not in name:
                    continue
                began = time.perf_counter()
                table[name] = measure(pool, search, path, seeds)
                shown = table[name]
                row = shown if isinstance(shown, str) else "".join(f"{100 * r:8.2f}%" for r in shown)
                print(f"{name:28}{row}   {time.perf_counter() - began:7.0f}", flush=True)
            reached &= judge({name: row for name, row in table.items() if not isinstance(row, str)})
    return reached


def judge(table: dict[str, list[float]]) -> bool:
    """Say where the goals are reached and where not."""
    own = table.get(OWN)
    if own is None:
        return True
    at = MARKS.index(GOAL_AT)
    reached = own[at] <= GOAL
    print(f"  within {GOAL:.0%} of the optimum at {GOAL_AT}: {'yes' if reached else 'NO'}")
    for number, mark in enumerate(MARKS):
        better = [name for name, row in table.items() if row[number] < own[number]]
        if better:
            reached = False
            print(f"  at {mark} evaluations NOT the lowest: {', '.join(better)}")
        else:
            print(f"  lowest at {mark} evaluations: yes")
    return reached


@frozen
class Said:
    """What one search said of its model, and ``true_r2``: of ln(time), over the whole space."""

    budget: int
    trust: Trust
    true_r2: float
    predictions: int
    inside: int


def one_said(path: str, budget: int, seed: int) -> Said:
    _, space = recorded(path)
    times = times_of(path)
    search = RegressionStrategy().start(StrategyRequest(space, budget, seed))
    history = [Evaluated(space.default, times[space.default])]  # as the command does it
    inside: list[bool] = []
    while len(history) < budget:
        (proposed,) = search.propose(history, (), 1)
        got = times[proposed.index]
        history.append(Evaluated(proposed.index, got))
        if proposed.predicted_interval_ms is not None and got is not None:
            low, high = proposed.predicted_interval_ms
            inside.append(low <= got <= high)
    model = TimeModel(space.features, seed)
    model.fit(training_of(history))
    rows = np.asarray([n for n, value in enumerate(times) if value is not None], np.intp)
    wanted = np.log([value for value in times if value is not None])
    errors = wanted - model.predict(rows).mean
    true_r2 = 1 - float((errors**2).sum() / ((wanted - wanted.mean()) ** 2).sum())
    return Said(budget, held_out(space, history, seed).trust, true_r2, len(inside), sum(inside))


def judge_trust(paths: list[str], seeds: int, jobs: int) -> bool:
    """Print what was said against what is true; true where the stated goals are reached."""
    everything: list[Said] = []
    with ProcessPoolExecutor(jobs, initializer=_one_thread) as pool:
        for path in paths:
            asked = [(budget, seed) for budget in TRUST_AT for seed in range(seeds)]
            found = list(pool.map(one_said, [path] * len(asked), *zip(*asked, strict=True)))
            everything += found
            print(f"{Path(path).name}: {_covered(found)}", flush=True)
            for budget in TRUST_AT:
                print(f"  {_trusted(found, budget)}", flush=True)
    print(f"all: {_covered(everything)}")
    for budget in TRUST_AT:
        print(f"  {_trusted(everything, budget)}")
    return _reaches_goals(everything)


def _covered(found: list[Said]) -> str:
    inside, all_of_them = sum(one.inside for one in found), sum(one.predictions for one in found)
    return f"{inside} of {all_of_them} measurements inside of their interval ({inside / all_of_them:.1%})"


def _trusted(found: list[Said], budget: int) -> str:
    here = [one for one in found if one.budget == budget]
    clear = [one for one in here if one.trust is Trust.CLEAR]
    good = [one for one in here if one.true_r2 >= GOOD_R2]
    wrong = sum(one.true_r2 < BAD_R2 for one in clear)
    median = np.median([one.true_r2 for one in here])
    clear_of_good = sum(one.trust is Trust.CLEAR for one in good)
    return (
        f"at {budget}: median true R² {median:.2f}, clear in {len(clear)} of {len(here)}, wrong in {wrong}; "
        f"of {len(good)} with R² {GOOD_R2} and more clear in {clear_of_good}"
    )


def _reaches_goals(found: list[Said]) -> bool:
    reached = True
    for budget in TRUST_AT:
        here = [one for one in found if one.budget == budget]
        wrong = sum(one.trust is Trust.CLEAR and one.true_r2 < BAD_R2 for one in here)
        reached &= wrong <= MOST_WRONG * len(here)
    good = [one for one in found if one.budget == TRUST_AT[-1] and one.true_r2 >= GOOD_R2]
    reached &= sum(one.trust is Trust.CLEAR for one in good) >= 0.5 * len(good)
    inside, predictions = sum(one.inside for one in found), sum(one.predictions for one in found)
    return reached and COVERED[0] <= inside / predictions <= COVERED[1]


def one_noise(samples: int, seed: int) -> Trust:
    """A space of 384 configurations in which the time is noise of 10 %."""
    from itertools import product

    from rpl_autotune.interfaces import SearchSpace

    rows = tuple(
        product((8, 16, 32, 48, 64, 96, 128, 256), (8, 16, 32, 48, 64, 96, 128, 256), (1, 2, 4), (0, 1))
    )
    space = SearchSpace(("A", "B", "C", "D"), rows, 0)
    generator = np.random.default_rng(seed)
    chosen = random_draws(space, seed)[:samples]
    times = generator.lognormal(0.0, 0.1, samples)
    history = [Evaluated(int(n), float(t)) for n, t in zip(chosen, times, strict=True)]
    return held_out(space, history, seed).trust


def count_noise(seeds: int, jobs: int) -> bool:
    believed = 0
    with ProcessPoolExecutor(jobs, initializer=_one_thread) as pool:
        for samples in (10, 15, 25, 50, 100):
            found = list(pool.map(partial(one_noise, samples), range(seeds)))
            clear, some = found.count(Trust.CLEAR), found.count(Trust.SOME)
            believed += clear
            print(
                f"{samples:4} measurements of noise: believed {clear} of {seeds}, half-believed {some}",
                flush=True,
            )
    return believed == 0


def confirm(path: str) -> bool:
    """The final measurement on recorded times: how often it finds a gain, and how often one that is none."""
    with Path(path).open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    wrong = 0.0
    for kind, gain in (("N", "the same program"), ("G3", "3 % less work"), ("G5", "5 % less work")):
        for column in CONFIRMED:
            base, other = (
                [float(row[column]) / 1e6 for row in rows if row["program"] == name] for name in ("A", kind)
            )
            found = [compare_times(other[n : n + ROUNDS], base[n : n + ROUNDS]) for n in starts(base)]
            faster = sum(one.proven for one in found) / len(found)
            slower = sum(one.interval is not None and one.interval[1] < 1 for one in found) / len(found)
            print(f"{gain:17} {column:12} faster {faster:6.1%}, slower {slower:6.1%} of {len(found)}")
            wrong = max(wrong, slower, faster if kind == "N" else 0.0)
    print(f"the most wrong verdicts of one kind: {wrong:.1%}")
    return wrong <= WRONG


def starts(times: list[float]) -> range:
    return range(0, len(times) - ROUNDS + 1, 5)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("spaces", nargs="*", help="cache files of Kernel Tuner, or T4")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", help="only those whose name holds this text")
    parser.add_argument("--trust", action="store_true", help="compare what is said of models with the truth")
    parser.add_argument("--noise", type=int, metavar="N", help="count belief in N series of pure noise")
    parser.add_argument("--confirm", metavar="CSV", help="judge the final measurement on recorded times")
    given = parser.parse_args()
    if given.confirm is not None:
        return 0 if confirm(given.confirm) else 1
    if given.noise is not None:
        return 0 if count_noise(given.noise, given.jobs) else 1
    if not given.spaces:
        parser.error("name at least one recorded space")
    if given.trust:
        return 0 if judge_trust(given.spaces, given.seeds, given.jobs) else 1
    return 0 if compare(given.spaces, given.seeds, given.jobs, given.only) else 1


if __name__ == "__main__":
    sys.exit(main())
