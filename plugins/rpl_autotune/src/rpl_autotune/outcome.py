"""The end of a search, measured afresh in turns, and ``autotune.json``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rpl_autotune.contracts import (
    AutotuneDocument,
    BestPart,
    BudgetPart,
    ComparisonPart,
    EndName,
    FinalPart,
    MeasuredPart,
    ModelPart,
)
from rpl_autotune.interfaces import Evaluated, Outcome, Reading, SearchSpace
from rpl_autotune.regression import TimeModel, Trust, effects_of, held_out, missing_libraries, training_of
from rpl_core import __version__
from rpl_core.contracts import SCHEMA_VERSION
from rpl_core.text import masked_text
from rpl_core.values import frozen
from rpl_measure.rank_tests import median, pseudo_median, signed_rank_interval

if TYPE_CHECKING:
    from rpl_autotune.tuning import JobWorkers, Tuning

_CONFIDENCE = 0.95
#: Below the session's directory: a run of the search's winner, as `rpl profile` would record it.
KEPT_RUN = "best"


@frozen
class FinalResult:
    """The winner and its fresh measurement, or the reason why there is none."""

    best: BestPart | None
    final: FinalPart | None = None
    missing: str | None = None


def measure_finally(tuning: Tuning, workers: JobWorkers) -> FinalResult:
    """Measure the two best of the search and the default again."""
    ranked = ranked_configurations(tuning)
    if not ranked:
        return FinalResult(None, None, "no configuration has a time")
    if tuning.request.options.confirm_rounds == 0:
        return without_final(tuning, "it was not asked for")
    asked = list(dict.fromkeys((*ranked[:2], tuning.request.space.default)))
    outcome = _outcome(tuning, workers, asked)
    if outcome is None or all(reading.state == "lost" for reading in outcome.readings):
        return without_final(tuning, "the device was lost")
    return _result(tuning, outcome, ranked)


def ranked_configurations(tuning: Tuning) -> list[int]:
    """Configurations with a time, the fastest of the search first."""
    good = [(item.runtime_ms, item.index) for item in tuning.history if item.runtime_ms is not None]
    return [index for _, index in sorted(good)]


def without_final(tuning: Tuning, reason: str) -> FinalResult:
    """The winner as the search left it."""
    ranked = ranked_configurations(tuning)
    if not ranked:
        return FinalResult(None, None, "no configuration has a time")
    time_ms = _search_ms(tuning, ranked[0])
    values = tuning.request.space.values(ranked[0])
    best = BestPart(parameters=values, runtime_ms=time_ms, fresh=False, search_ms=time_ms)
    return FinalResult(best, None, reason)


def _outcome(tuning: Tuning, workers: JobWorkers, asked: Sequence[int]) -> Outcome | None:
    variants = tuple(tuning.request.templates.variant(tuning.request.space, index) for index in asked)
    present = workers.places()
    standard = tuning.devices.standard
    device = standard if standard in present else next(iter(present), None)
    if device is None:
        return None
    keep = str(tuning.request.scratch / KEPT_RUN)
    job = tuning.job(variants, device, tuning.request.options.confirm_rounds, keep)
    tuning.tools.step(f"final measurement of {len(variants)} configurations on {device}")
    workers.submit(job)
    while True:
        for outcome in workers.wait(None):
            if outcome.number == job.number:
                return outcome


def _search_ms(tuning: Tuning, index: int) -> float:
    return next(
        item.runtime_ms for item in tuning.history if item.index == index and item.runtime_ms is not None
    )


def _result(tuning: Tuning, outcome: Outcome, ranked: Sequence[int]) -> FinalResult:
    readings = {reading.index: reading for reading in outcome.readings}
    finalists = [index for index in ranked[:2] if readings[index].state == "ok"]
    if not finalists:
        return without_final(tuning, f"it failed: {readings[ranked[0]].reason}")
    winner = finalists[0]
    runner_up = finalists[1] if len(finalists) > 1 else None
    times = {index: reading.times_ms for index, reading in readings.items()}
    comparison = None if runner_up is None else compare_times(times[winner], times[runner_up])
    swapped = comparison is not None and comparison.interval is not None and comparison.interval[1] < 1
    if swapped and runner_up is not None:
        winner, runner_up = runner_up, winner
        comparison = compare_times(times[winner], times[runner_up])
    default = readings[tuning.request.space.default]
    final = FinalPart(
        device=outcome.device,
        rounds=tuning.request.options.confirm_rounds,
        measured=tuple(_measured(tuning, readings, winner, runner_up)),
        best_over_runner_up=comparison,
        best_over_default=None
        if default.index == winner or default.state != "ok"
        else compare_times(times[winner], default.times_ms),
        swapped=swapped,
    )
    best = BestPart(
        parameters=tuning.request.space.values(winner),
        runtime_ms=median(readings[winner].times_ms),
        fresh=True,
        search_ms=_search_ms(tuning, winner),
    )
    return FinalResult(best, final)


def _measured(
    tuning: Tuning, readings: dict[int, Reading], winner: int, runner_up: int | None
) -> list[MeasuredPart]:
    space = tuning.request.space
    roles = {"best": winner, "runner_up": runner_up, "default": space.default}
    parts = []
    known = {item.index: item.runtime_ms for item in tuning.history}
    for role, index in roles.items():
        if index is None or index not in readings:
            continue
        reading = readings[index]
        parts.append(
            MeasuredPart.model_validate(
                {
                    "role": role,
                    "parameters": space.values(index),
                    "runtime_ms": median(reading.times_ms) if reading.state == "ok" else None,
                    "times_ms": reading.times_ms,
                    "search_ms": known.get(index),
                    "reason": reading.reason,
                }
            )
        )
    return parts


def compare_times(best: Sequence[float], other: Sequence[float]) -> ComparisonPart:
    """Pairs of one round; the interval is that of Wilcoxon's signed-rank test on their log ratios."""
    ratios = [math.log(b / a) for a, b in zip(best, other, strict=True)]
    interval = signed_rank_interval(ratios, _CONFIDENCE)
    shown = None if interval is None else (math.exp(interval[0]), math.exp(interval[1]))
    return ComparisonPart(
        ratio=math.exp(pseudo_median(ratios)),
        interval=shown,
        pairs=len(ratios),
        proven=shown is not None and shown[0] > 1,
    )


# From a finished search to `autotune.json`: the model's judgement, the warning and its remedies.

LOW_CONFIDENCE = "low_model_confidence"
REMEDIES = (
    "increase the seed fraction (--seed-fraction, at most 0.25) or the budget",
    "reduce the dimensionality of the search: fewer parameters or values",
    "inspect the variance of the runtime: more --runs, locked clocks, an idle machine",
)
#: Where the model's libraries are absent nothing else helps.
INSTALL = "pip install 'rpl-autotune[regression]', and search again"


def autotune_document(tuning: Tuning, end: EndName, result: FinalResult) -> AutotuneDocument:
    """The whole document."""
    request, options, evaluations = tuning.request, tuning.request.options, tuple(tuning.evaluations)
    model = judged_model(request.space, tuning.history, options.seed)
    doubtful = model.trust != Trust.CLEAR.value
    return AutotuneDocument.model_validate(
        {
            "schema_version": SCHEMA_VERSION,
            "provenance": {"tool_version": __version__, "origin": tuning.origin},
            "command_template": masked_text(request.command_text),
            "build_template": None if request.build_text is None else masked_text(request.build_text),
            "time_source": request.timing.source,
            "origin": tuning.origin,
            "strategy": "exhaustive" if options.exhaustive else tuning.tools.strategy.name,
            "executor": tuning.tools.executor.name,
            "seed": options.seed,
            "search_space_size": len(request.space),
            "evaluated_configs": len(evaluations),
            "failed_configs": sum(item.state != "ok" for item in evaluations),
            "cached_configs": sum(item.from_cache for item in evaluations),
            "budget": BudgetPart(
                evaluations=request.budget, time_s=options.time_budget_s, used_s=tuning.used_s
            ),
            "termination_reason": end,
            "best_config": result.best,
            "final": result.final,
            "final_missing": result.missing,
            "model": model,
            "warning": LOW_CONFIDENCE if doubtful else None,
            "remedies": (REMEDIES if missing_libraries() is None else (INSTALL,)) if doubtful else (),
            "default": request.space.values(request.space.default),
            "devices": tuning.devices.parts(),
            "evaluations": evaluations,
        }
    )


def judged_model(space: SearchSpace, history: Sequence[Evaluated], seed: int) -> ModelPart:
    """The regression on everything that was measured, by its held-out error on random draws."""
    judged = held_out(space, history, seed)
    part = ModelPart(
        r2=judged.r2,
        r2_low=judged.r2_low,
        residual_std=judged.residual_std,
        samples=judged.samples,
        trust=judged.trust.value,
        reason=judged.reason,
        features=space.features.coordinate_names,
    )
    if judged.trust is Trust.NONE:
        return part  # effects in a model that knows nothing would be read as knowledge
    model = TimeModel(space.features, seed)
    model.fit(training_of(history))
    effects = effects_of(space, model.predict(np.arange(len(space))).mean)
    return part.model_copy(update={"parameters": dict(effects.single), "pairs": effects.pairs})
