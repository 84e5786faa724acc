"""The space file: what can be tuned, as an explicit list or as parameters with values and constraints."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, RootModel, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from rpl_core.contracts.common import Part

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
