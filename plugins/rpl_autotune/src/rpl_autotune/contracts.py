"""The JSON files of the autotuner as pydantic models: ``autotune.json`` and the space file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, RootModel, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from rpl_autotune.interfaces import State, TimeSource
from rpl_core.contracts.common import Document, OriginName, Part

# The result of ``rpl autotune``, with every evaluation.

Parameters = dict[str, StrictBool | StrictInt | StrictFloat | StrictStr]
EndName = Literal["budget", "time_budget", "exhausted", "interrupted"]
PhaseName = Literal["reference", "seed", "confirm", "explore", "all"]


class EvaluationPart(Part):
    """One configuration that was measured. ``runtime_ms`` null: it failed, and ``reason`` says why.

    ``runtime_ms`` is the median of ``times_ms``, times ``correction`` where devices differ.
    ``predicted_ms`` was said before it was measured, and ``predicted_interval_ms``, in which 19 of 20
    measurements are expected.
    """

    number: int
    parameters: Parameters
    phase: PhaseName
    state: State
    runtime_ms: float | None
    times_ms: tuple[float, ...] = ()
    device: str | None = None
    correction: float | None = None
    predicted_ms: float | None = None
    predicted_interval_ms: tuple[float, float] | None = None
    from_cache: bool = False
    reason: str | None = None


class MeasuredPart(Part):
    """A configuration in the final measurement: fresh runs, in turns with the others. Median and range."""

    role: Literal["best", "runner_up", "default"]
    parameters: Parameters
    runtime_ms: float | None
    times_ms: tuple[float, ...] = ()
    search_ms: float | None = None  # what the search had measured; chosen for being small
    reason: str | None = None


class ComparisonPart(Part):
    """Time of the other one divided by that of the best, with a 95 % interval over pairs of one round.

    Above 1 the best is faster. ``proven``: the interval excludes 1. Null where too few rounds can't say.
    """

    ratio: float
    interval: tuple[float, float] | None
    pairs: int
    proven: bool


class FinalPart(Part):
    """The measurement after the search, which no choice has favoured."""

    device: str
    rounds: int
    measured: tuple[MeasuredPart, ...]
    best_over_runner_up: ComparisonPart | None = None
    best_over_default: ComparisonPart | None = None
    swapped: bool = False  # the runner-up of the search turned out to be faster


class BestPart(Part):
    """The winner. ``runtime_ms`` is from the final measurement where there is one (``fresh``)."""

    parameters: Parameters
    runtime_ms: float
    fresh: bool
    search_ms: float


class ModelPart(Part):
    """The regression on all evaluations, judged by cross-validation on random draws from the whole space.
    Figures are of ln(time). ``r2_low``: R² over the whole space is below it once in 20. ``samples`` counts
    the draws that have a time.

    ``features`` are the static numbers that it learns from, products and ratios of parameters apart.
    ``r2`` null: too few draws. ``pairs`` and ``parameters`` are parts of the variance of predictions.
    """

    r2: float | None
    r2_low: float | None = None
    residual_std: float | None
    samples: int
    trust: Literal["none", "some", "clear"]
    reason: str | None = None
    features: tuple[str, ...] = ()
    parameters: dict[str, float] = Field(default_factory=dict)
    pairs: tuple[tuple[str, str, float], ...] = ()


class DevicePart(Part):
    """A device that measured. Its times are multiplied by ``correction``: that of the first device divided
    by its own time of the reference configuration. Null: there is one device only.
    """

    name: str
    evaluations: int
    reference_ms: float | None = None
    correction: float | None = None


class BudgetPart(Part):
    evaluations: int
    time_s: float | None = None
    used_s: float = Field(ge=0)


class AutotuneDocument(Document):
    """``autotune.json``. ``warning`` is null or ``low_model_confidence``; ``remedies`` say what helps."""

    command_template: str
    build_template: str | None = None
    time_source: TimeSource
    origin: OriginName | None
    strategy: str
    executor: str
    seed: int
    search_space_size: int
    evaluated_configs: int
    failed_configs: int
    cached_configs: int
    budget: BudgetPart
    termination_reason: EndName
    best_config: BestPart | None
    final: FinalPart | None = None
    final_missing: str | None = None
    model: ModelPart
    warning: Literal["low_model_confidence"] | None = None
    remedies: tuple[str, ...] = ()
    default: Parameters
    devices: tuple[DevicePart, ...] = ()
    evaluations: tuple[EvaluationPart, ...] = ()


# The space file: what can be tuned, as an explicit list or as parameters with values and constraints.

PARAMETER_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,99}$"
#: Whole numbers that models can calculate with: those of 64 bits.
LARGEST_WHOLE = 2**63 - 1
ParameterName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
ParameterValue = (
    StrictBool
    | Annotated[StrictInt, Field(ge=-LARGEST_WHOLE, le=LARGEST_WHOLE)]
    | Annotated[StrictFloat, Field(allow_inf_nan=False)]
    | StrictStr
)
Listed = dict[ParameterName, ParameterValue]


class SpaceDescription(Part):
    """Either ``configurations`` or ``parameters``.

    ``constraints`` must all hold. ``features`` are numbers by name that a model learns from, such as the
    threads of a block. ``default`` is the configuration that is used today: results are compared with it.
    """

    configurations: tuple[Listed, ...] | None = None
    parameters: dict[ParameterName, tuple[ParameterValue, ...]] | None = None
    constraints: tuple[str, ...] = ()
    features: dict[str, str] = Field(default_factory=dict)
    default: Listed | None = None

    @model_validator(mode="after")
    def _one_form(self) -> SpaceDescription:
        if (self.configurations is None) == (self.parameters is None):
            raise ValueError("give either configurations or parameters")
        return self


class SpaceFile(RootModel[tuple[Listed, ...] | SpaceDescription]):
    """``space.json``: a description, or nothing but a list of configurations."""

    @property
    def description(self) -> SpaceDescription:
        if isinstance(self.root, SpaceDescription):
            return self.root
        return SpaceDescription(configurations=self.root)
