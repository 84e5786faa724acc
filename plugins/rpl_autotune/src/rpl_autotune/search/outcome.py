"""From a finished search to `autotune.json`: the model's judgement, the warning and its remedies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_autotune.contracts.autotune import AutotuneDocument, BudgetPart, ModelPart
from rpl_autotune.regression.confidence import Trust, held_out
from rpl_autotune.regression.effects import effects_of
from rpl_autotune.regression.model import TimeModel, training_of
from rpl_core import __version__
from rpl_core.contracts import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_autotune.contracts.autotune import EndName
    from rpl_autotune.interfaces.space import SearchSpace
    from rpl_autotune.interfaces.strategy import Evaluated
    from rpl_autotune.search.final import FinalResult
    from rpl_autotune.search.tuning import Tuning

__all__ = ["autotune_document", "judged_model"]

LOW_CONFIDENCE = "low_model_confidence"
REMEDIES = (
    "increase the seed fraction (--seed-fraction, at most 0.25) or the budget",
    "reduce the dimensionality of the search: fewer parameters or values",
    "inspect the variance of the runtime: more --runs, locked clocks, an idle machine",
)


def autotune_document(tuning: Tuning, end: EndName, result: FinalResult) -> AutotuneDocument:
    """The whole document."""
    request, evaluations = tuning.request, tuple(tuning.evaluations)
    model = judged_model(request.space, tuning.history, request.seed)
    doubtful = model.trust != Trust.CLEAR.value
    return AutotuneDocument.model_validate(
        {
            "schema_version": SCHEMA_VERSION,
            "provenance": {"tool_version": __version__, "origin": tuning.origin},
            "command_template": request.command_text,
            "build_template": request.build_text,
            "time_source": request.timing.source,
            "origin": tuning.origin,
            "strategy": "exhaustive" if request.exhaustive else tuning.tools.strategy.name,
            "executor": tuning.tools.executor.name,
            "seed": request.seed,
            "search_space_size": len(request.space),
            "evaluated_configs": len(evaluations),
            "failed_configs": sum(item.state != "ok" for item in evaluations),
            "cached_configs": sum(item.from_cache for item in evaluations),
            "budget": BudgetPart(
                evaluations=request.budget, time_s=request.time_budget_s, used_s=tuning.used_s
            ),
            "termination_reason": end,
            "best_config": result.best,
            "final": result.final,
            "final_missing": result.missing,
            "model": model,
            "warning": LOW_CONFIDENCE if doubtful else None,
            "remedies": REMEDIES if doubtful else (),
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
