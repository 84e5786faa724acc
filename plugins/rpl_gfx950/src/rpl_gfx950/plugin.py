"""gfx950 for rpl: MI350X, MI355X and MI350P with ceilings and counter formulas."""

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
    from rpl_gfx950.products import GFX950

    return device_models(GFX950)


@hookimpl
def rpl_detect_device(agents: tuple[Agent, ...]) -> DeviceModel | None:
    from rpl_amdgpu.detection import detect_device
    from rpl_gfx950.products import GFX950

    return detect_device(GFX950, agents)
