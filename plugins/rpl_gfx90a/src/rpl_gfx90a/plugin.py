"""gfx90a for rpl: MI210, MI250 and MI250X with ceilings and counter formulas."""

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
    from rpl_gfx90a.products import GFX90A

    return device_models(GFX90A)


@hookimpl
def rpl_detect_device(agents: tuple[Agent, ...]) -> DeviceModel | None:
    from rpl_amdgpu.detection import detect_device
    from rpl_gfx90a.products import GFX90A

    return detect_device(GFX90A, agents)
