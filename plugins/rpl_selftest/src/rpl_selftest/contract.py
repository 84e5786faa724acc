"""``selftest.json``: what was checked on a machine, and what came of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(max_length=2000)]
Short = Annotated[str, Field(max_length=200)]
OutcomeName = Literal["confirmed", "refuted", "not possible"]
OriginName = Literal["measured", "modelled", "synthetic"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LinePart(_Strict):
    """One check. ``found`` is the reason where it was not possible."""

    check: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]
    outcome: OutcomeName
    runs: Text
    expected: Text
    found: Text
    document: Short
    essential: bool
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    figures: dict[Short, Annotated[float, Field(allow_inf_nan=False)] | None] = Field(default_factory=dict)


class SelftestDocument(_Strict):
    """``origin`` is that of the times; only ``measured`` tells of hardware. Null: nothing was recorded."""

    schema_version: Annotated[str, Field(pattern=r"^1\.[0-9]+$")] = "1.0"
    rpl_version: Short
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    mode: Literal["quick", "full"]
    origin: OriginName | None
    device: Short | None
    product: Short | None
    profiler: Short | None
    verdict: Literal["confirmed", "refuted", "no verdict"]
    confirmed: Annotated[int, Field(ge=0)]
    refuted: Annotated[int, Field(ge=0)]
    not_possible: Annotated[int, Field(ge=0)]
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    lines: Annotated[tuple[LinePart, ...], Field(max_length=200)]

    @property
    def label(self) -> str:
        """What stands behind an outcome wherever it is shown: nothing but a measured one stands alone."""
        return "" if self.origin == "measured" else f" ({self.origin or 'nothing recorded'})"

    @property
    def about(self) -> str:
        """What the outcomes say something of, in words that no reader can take for more."""
        if self.origin == "measured":
            return "measured on this machine's GPU"
        if self.origin is None:
            return "nothing was recorded: no outcome says anything of a GPU"
        return f"{self.origin}: no outcome says anything of a GPU"
