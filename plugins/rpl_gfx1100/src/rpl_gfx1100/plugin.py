"""RDNA 3, 3.5 and 4 for rpl: Radeon GPUs with counter formulas, and ceilings where a source states them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.model.device import DeviceModel
    from rpl_core.model.trace import Agent

RPL_API = 2


@hookimpl
def rpl_device_models() -> tuple[DeviceModel, ...]:
    from rpl_amdgpu.models import device_models
    from rpl_gfx1100.products import FAMILIES

    return tuple(model for family in FAMILIES for model in device_models(family))


@hookimpl
def rpl_detect_device(agents: tuple[Agent, ...]) -> DeviceModel | None:
    from rpl_amdgpu.detection import detect_device
    from rpl_gfx1100.products import FAMILIES

    models = (detect_device(family, agents) for family in FAMILIES)
    return next((model for model in models if model is not None), None)
