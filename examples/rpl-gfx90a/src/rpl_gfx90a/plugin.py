"""The hooks of this plugin: which devices it knows, and how it recognises them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core import hookimpl

if TYPE_CHECKING:
    from rpl_core.model.device import DeviceModel
    from rpl_core.model.trace import Agent

RPL_API = 1


@hookimpl
def rpl_device_models() -> tuple[DeviceModel, ...]:
    from rpl_gfx90a.models import MI210, MI250X_GCD

    return (MI210, MI250X_GCD)


@hookimpl
def rpl_detect_device(agents: tuple[Agent, ...]) -> DeviceModel | None:
    from rpl_gfx90a.detect import detect_device

    return detect_device(agents)
