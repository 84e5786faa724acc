"""The facts of the architecture that a recording was made on, from the device or from any plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpl_core.interfaces.analyzer import AnalysisContext
    from rpl_core.model.device import Architecture

__all__ = ["architecture_name", "architecture_of"]


def architecture_name(context: AnalysisContext) -> str | None:
    """That of the device, or the only one recorded; ``None`` if there are none or several."""
    if context.device is not None:
        return context.device.architecture
    recorded = {agent.architecture for agent in context.recording.gpu_agents}
    return recorded.pop() if len(recorded) == 1 else None


def architecture_of(context: AnalysisContext) -> Architecture | None:
    """What the device says of its architecture, else what an installed plugin knows by its name."""
    if context.device is not None and context.device.architecture_facts is not None:
        return context.device.architecture_facts
    name = architecture_name(context)
    return None if name is None else context.architecture(name)
