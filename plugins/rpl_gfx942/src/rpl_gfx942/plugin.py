"""gfx942 for rpl: MI300X, MI300A, MI325X and MI308X with ceilings and counter formulas."""

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
    from rpl_gfx942.products import GFX942

    return device_models(GFX942)


@hookimpl
def rpl_detect_device(agents: tuple[Agent, ...]) -> DeviceModel | None:
    from rpl_amdgpu.detection import detect_device
    from rpl_gfx942.products import GFX942

    return detect_device(GFX942, agents)
