"""Recognise MI210 and MI250X by architecture and number of compute units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_gfx90a.architecture import ARCHITECTURE
from rpl_gfx90a.models import MI210, MI250X_GCD

if TYPE_CHECKING:
    from rpl_core.model.device import DeviceModel
    from rpl_core.model.trace import Agent


def detect_device(agents: tuple[Agent, ...]) -> DeviceModel | None:
    """The one product behind all GPUs among ``agents``; ``None`` when that is not settled."""
    found = [_model_of(agent) for agent in agents if agent.kind == "GPU"]
    if not found or any(model is not found[0] for model in found):
        return None
    return found[0]


def _model_of(agent: Agent) -> DeviceModel | None:
    if (agent.architecture or "").split(":")[0] != ARCHITECTURE:
        return None
    models = (MI210, MI250X_GCD)
    return next((model for model in models if model.compute_units == agent.compute_units), None)
